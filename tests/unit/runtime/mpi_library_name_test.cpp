// What MPI libraries and their launchers say about themselves, and what we make of it.
#include <gtest/gtest.h>

#include "gar/mpi_library.hpp"

namespace gar {
namespace {

constexpr const char* kOpenMpi =
    "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022";
constexpr const char* kMpich = "MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7 12:34:45 CDT 2022\n";
constexpr const char* kIntel = "Intel(R) MPI Library 2021.8 for Linux* OS\n";
constexpr const char* kMvapich = "MVAPICH2 Version\t:\t2.3.7\nMVAPICH2 Release date\t:\t2022\n";

TEST(MpiLibraryName, IsAShortNameWithANumber) {
  EXPECT_EQ(mpi_library_name(kOpenMpi), "Open MPI 4.1.4");
  EXPECT_EQ(mpi_library_name(kMpich), "MPICH 4.0.2");
  EXPECT_EQ(mpi_library_name(kIntel), "Intel(R) MPI Library 2021.8 for Linux* OS");
  EXPECT_EQ(mpi_library_name(kMvapich), "MVAPICH2 Version : 2.3.7");
  EXPECT_EQ(mpi_library_name("Open MPI"), "Open MPI");
  EXPECT_EQ(mpi_library_name(""), "");
}

TEST(MpiLibraryName, FollowsTheBinaryInterface) {
  EXPECT_EQ(mpi_library_of(kOpenMpi), MpiLibrary::kOpenMpi);
  for (const char* text : {kMpich, kIntel, kMvapich}) EXPECT_EQ(mpi_library_of(text), MpiLibrary::kMpich);
  EXPECT_EQ(mpi_library_of("slurm 22.05.8"), std::nullopt);
}

TEST(MpiLibraryName, ComesFromLaunchersToo) {
  EXPECT_EQ(mpi_library_of("mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/"), MpiLibrary::kOpenMpi);
  EXPECT_EQ(mpi_library_of("HYDRA build details:\n    Version:  4.0.2\n"), MpiLibrary::kMpich);
}

}  // namespace
}  // namespace gar
