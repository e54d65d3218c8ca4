"""The bill of materials against SPDX 2.3, against what CMake has found, and against what was linked: sbom_test.py BUILD"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

LICENCES = {"MIT", "MPL-2.0", "BSD-3-Clause", "Apache-2.0", "Apache-2.0 OR BSD-3-Clause", "BSD-3-Clause-Open-MPI",
            "mpich2", "NOASSERTION"}  # of the SPDX list, as far as we use it
ID = r"SPDXRef-[A-Za-z0-9.-]+"
CONFIGS = {"fmt": "fmt_DIR", "nlohmann-json": "nlohmann_json_DIR", "eigen": "Eigen3_DIR", "CLI11": "CLI11_DIR",
           "highway": "hwy_DIR", "pybind11": "pybind11_DIR"}
LIBRARIES = {"fmt": "libfmt", "highway": "libhwy", "hwloc": "libhwloc", "openmpi": "libmpi.so", "mpich": "libmpich",
             "cuda-runtime": "libcudart", "nccl": "libnccl", "openssl": "libcrypto"}
LOADED_LATER = {"nccl"}  # by dlopen


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def cache():
    """CMake's variables."""
    return dict(re.findall(r"^([A-Za-z0-9_]+):[A-Z]+=(.*)$", read(os.path.join(BUILD, "CMakeCache.txt")), re.MULTILINE))


def config_version(directory):
    """As find_package reads it."""
    for path in glob.glob(os.path.join(directory, "*[vV]ersion.cmake")):
        found = re.search(r'set\(\s*PACKAGE_VERSION\s+"([^"]+)"', read(path))
        if found:
            return found[1]
    raise AssertionError("no version in " + directory)


def words(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


def needed():
    """{program or module: libraries that the loader looks for}"""
    files = glob.glob(os.path.join(BUILD, "bin", "gar*")) + glob.glob(os.path.join(BUILD, "lib", "gar", "*.so"))
    return {os.path.basename(path): re.findall(r"NEEDED.*\[(.*)\]", words("readelf", "-dW", path)) for path in files}


class Sbom(unittest.TestCase):
    def setUp(self):
        with open(os.path.join(BUILD, "gar.spdx.json"), encoding="utf-8") as file:
            self.document = json.load(file)
        self.packages = {package["name"]: package for package in self.document["packages"]}

    def how(self, name):
        """The relationship with a component."""
        both = {"SPDXRef-gar", self.packages[name]["SPDXID"]}
        found = [r["relationshipType"] for r in self.document["relationships"]
                 if {r["spdxElementId"], r["relatedSpdxElement"]} == both]
        self.assertEqual(len(found), 1, name)
        return found[0]

    def test_the_document(self):
        d = self.document
        self.assertEqual((d["spdxVersion"], d["dataLicense"], d["SPDXID"]), ("SPDX-2.3", "CC0-1.0", "SPDXRef-DOCUMENT"))
        self.assertTrue(d["name"])
        self.assertRegex(d["documentNamespace"], r"^https://[^#\s]+$")
        self.assertRegex(d["creationInfo"]["created"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertTrue(d["creationInfo"]["creators"])
        for creator in d["creationInfo"]["creators"]:
            self.assertRegex(creator, r"^(Tool|Person|Organization): \S")

    def test_the_packages(self):
        own = {info["licenseId"] for info in self.document["hasExtractedLicensingInfos"] if info["extractedText"]}
        self.assertEqual(len({p["SPDXID"] for p in self.document["packages"]}), len(self.document["packages"]))
        for name, package in self.packages.items():
            with self.subTest(name):
                self.assertRegex(package["SPDXID"], "^%s$" % ID)
                self.assertRegex(package["downloadLocation"], r"^(https://\S+|NOASSERTION)$")
                self.assertIs(package["filesAnalyzed"], False)
                self.assertIn(package["licenseDeclared"], LICENCES | own)
                self.assertIn(package["licenseConcluded"], LICENCES | own)
                self.assertTrue(package["copyrightText"])
                self.assertRegex(package["versionInfo"], r"^\d+(\.\w+)+$")
                for reference in package.get("externalRefs", []):
                    self.assertEqual(reference["referenceType"], "purl")
                    self.assertRegex(reference["referenceLocator"],
                                     r"^pkg:[a-z]+/[a-z0-9._-]+/[a-z0-9._-]+@" + re.escape(package["versionInfo"]) + "$")

    def test_the_relationships(self):
        known = {package["SPDXID"] for package in self.document["packages"]} | {"SPDXRef-DOCUMENT"}
        for relation in self.document["relationships"]:
            self.assertIn(relation["spdxElementId"], known)
            self.assertIn(relation["relatedSpdxElement"], known)
            self.assertIn(relation["relationshipType"], {"DESCRIBES", "STATIC_LINK", "DYNAMIC_LINK", "BUILD_TOOL_OF"})
        for name in self.packages:
            if name != "gar":
                self.how(name)

    def test_versions_are_those_that_were_found(self):
        variables = cache()
        self.assertEqual(self.packages["gar"]["versionInfo"], variables["CMAKE_PROJECT_VERSION"])
        for name, variable in CONFIGS.items():
            directory = variables.get(variable, "")
            if not directory or directory.endswith("-NOTFOUND"):
                self.assertNotIn(name, self.packages)
                continue
            self.assertEqual(self.packages[name]["versionInfo"], config_version(directory), name)

    def test_versions_are_those_that_the_tools_say(self):
        variables = cache()
        for name, command in (("openmpi", (variables.get("GAR_MPICXX_OPENMPI"), "--showme:version")),
                              ("cuda-runtime", (variables.get("CMAKE_CUDA_COMPILER"), "--version")),
                              ("hwloc", ("pkg-config", "--modversion", "hwloc")),
                              ("openssl", ("pkg-config", "--modversion", "libcrypto"))):
            if name in self.packages and command[0] and shutil.which(command[0]):
                self.assertIn(self.packages[name]["versionInfo"], words(*command), name)
        if "mpich" in self.packages and shutil.which("mpirun.mpich"):
            self.assertIn(self.packages["mpich"]["versionInfo"], words("mpirun.mpich", "--version"))
        compilers = [name for name in self.packages if name.endswith("-compiler")]
        self.assertEqual(len(compilers), 1)
        self.assertIn(self.packages[compilers[0]]["versionInfo"], words(variables["CMAKE_CXX_COMPILER"], "--version"))

    def test_what_is_linked(self):
        files = needed()
        if not files or not shutil.which("readelf"):
            self.skipTest("no programs, or no readelf")
        self.assertIn("gar", files)
        for name, library in LIBRARIES.items():
            users = [file for file, libraries in files.items() if any(l.startswith(library) for l in libraries)]
            is_loaded = name in self.packages and self.how(name) == "DYNAMIC_LINK" and name not in LOADED_LATER
            self.assertEqual(bool(users), is_loaded, "%s: %s" % (name, users))


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main()
