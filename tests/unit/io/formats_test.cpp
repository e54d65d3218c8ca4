// The table of formats: every format has a name of its own, and what is written can be read again where both exist.
#include "io/results/formats.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "gar/algorithms.hpp"
#include "gar/errors.hpp"
#include "gar/plan_io.hpp"
#include "gar/topology_io.hpp"

namespace gar {
namespace {

template <class Formats>
void expect_different_names(const Formats& formats) {
  std::set<std::string_view> names;
  for (const auto& format : formats) EXPECT_TRUE(names.insert(format.name).second) << format.name;
  EXPECT_FALSE(names.empty());
}

TEST(Formats, HaveNamesOfTheirOwn) {
  expect_different_names(topology_readers());
  expect_different_names(topology_writers());
  expect_different_names(plan_readers());
  expect_different_names(plan_writers());
  expect_different_names(results_documents());
  expect_different_names(results_tables());
}

TEST(Formats, AreFoundByNameAndByFile) {
  EXPECT_EQ(find_topology_writer("dot")->name, "dot");
  EXPECT_EQ(find_topology_writer("gif"), nullptr);
  EXPECT_EQ(find_topology_reader("gar-json"), &topology_readers().front());
  EXPECT_EQ(find_topology_reader("visio"), nullptr);
  EXPECT_EQ(topology_writer_of("net.dot")->name, "dot");
  EXPECT_EQ(topology_writer_of("net.gv")->name, "dot");
  EXPECT_EQ(topology_writer_of("net.json")->name, "json");
  EXPECT_EQ(topology_writer_of("")->name, "json");
  EXPECT_EQ(topology_writer_of("my.networks/net")->name, "json");
  EXPECT_EQ(topology_writer_of("net.png"), nullptr);
}

TEST(Formats, ImportRecognisesOurFiles) {
  const std::string path = testing::TempDir() + "/gar_formats_test.json";
  {
    std::ofstream file(path);
    find_topology_writer("json")->write(make_tree({2, 3}), file);
  }
  EXPECT_EQ(import_topology(path).num_servers(), 6);
  EXPECT_EQ(import_topology(path, &topology_readers().front()).num_servers(), 6);
  std::ofstream(path) << "not a network";
  EXPECT_THROW((void)import_topology(path), ParseError);
  std::filesystem::remove(path);
}

TEST(Formats, PlansComeBack) {
  std::stringstream text;
  plan_writers().front().write(hcps(12, {4, 3}), text);
  EXPECT_EQ(plan_readers().front().read(text, "plan.json"), hcps(12, {4, 3}));
}

}  // namespace
}  // namespace gar
