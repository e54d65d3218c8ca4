// Medians, hashes and environment variables.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>

#include "base/hash.hpp"
#include "gar/environment.hpp"
#include "gar/errors.hpp"
#include "gar/stats.hpp"
#include "gar/topology.hpp"
#include "topology/hash.hpp"

namespace gar {
namespace {

TEST(Stats, TheMedianIsInTheMiddle) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(median({5, 1, 3}), 3);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
}

TEST(Hash, OrderAndKindsOfValuesMatter) {
  EXPECT_NE(mix_in(mix_in(0, 1), 2), mix_in(mix_in(0, 2), 1));
  EXPECT_NE(mix_in(1, mix_in(2, 3)), mix_in(2, mix_in(1, 3)));
  EXPECT_EQ(mix_in(0, 0.0), mix_in(0, -0.0));
  EXPECT_NE(mix_in(0, std::string_view("ab")), mix_in(mix_in(0, std::string_view("a")), std::string_view("b")));
}

TEST(Hash, OfATopologyKnowsNamesParametersAndChildren) {
  std::set<std::uint64_t> seen;
  PaperParams other;
  other.server.delta *= 2;
  for (const Topology& topology : {make_tree({4}), make_tree({5}), make_tree({2, 2}), make_tree({4}, other)}) {
    EXPECT_TRUE(seen.insert(hash_of(topology)).second);
  }
  EXPECT_EQ(hash_of(make_tree({4})), hash_of(make_tree({4})));
  std::vector<Node> nodes(2);
  nodes[0].name = "rank";
  nodes[1].children = {{0, 4}};
  const std::uint64_t plain = hash_of(Topology("star", nodes, 1));
  nodes[0].name = "host";
  EXPECT_NE(hash_of(Topology("star", nodes, 1)), plain);
}

/// Sets a variable as long as it lives.
class Setting {
 public:
  Setting(const EnvironmentVariable& variable, const char* value) : name_(variable.name) { setenv(name_, value, 1); }
  ~Setting() { unsetenv(name_); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* name_;
};

template <class F>
std::string refusal_of(F f) {
  try {
    f();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Environment, WhatIsNotSetIsNothing) {
  unsetenv(environment::kTimeout.name);
  EXPECT_FALSE(environment::number(environment::kTimeout));
  const Setting empty(environment::kTimeout, "");
  EXPECT_FALSE(environment::number(environment::kTimeout));
  EXPECT_EQ(environment::text(environment::kTimeout), "");
}

TEST(Environment, ReadsFlagsAndNumbers) {
  const Setting check(environment::kCheck, "1");
  EXPECT_EQ(environment::flag(environment::kCheck), true);
  const Setting hosts(environment::kFakeHosts, "3");
  EXPECT_EQ(environment::whole_number(environment::kFakeHosts), 3);
  const Setting timeout(environment::kTimeout, "2.5e1");
  EXPECT_EQ(environment::number(environment::kTimeout), 25);
}

TEST(Environment, BadValuesNameTheVariableAndWhatIsAccepted) {
  for (const char* value : {"0", "-1", "two", "3x", "99999999999999999999", "2147483648"}) {
    const Setting hosts(environment::kFakeHosts, value);
    EXPECT_EQ(refusal_of([] { (void)environment::whole_number(environment::kFakeHosts); }),
              std::string("GAR_FAKE_HOSTS=") + value +
                  " in the environment: expected a number of pretended hosts, 1 or more");
  }
  for (const char* value : {"0", "-1", "inf", "nan", " 3", "0x10", "1e10", "s", "1s"}) {
    const Setting timeout(environment::kTimeout, value);
    EXPECT_EQ(refusal_of([] { (void)environment::number(environment::kTimeout); }),
              std::string("GAR_TIMEOUT=") + value + " in the environment: expected a number of seconds, 0.001 to 1e9");
  }
  const Setting check(environment::kCheck, "yes");
  EXPECT_EQ(refusal_of([] { (void)environment::flag(environment::kCheck); }),
            "GAR_CHECK=yes in the environment: expected 0 or 1");
}

// What check() accepts is what the function for this kind of value accepts.
TEST(Environment, AVariableCanBeCheckedBeforeItIsRead) {
  for (const EnvironmentVariable& variable : environment::kAll) {
    const bool is_text = variable.value == EnvironmentValue::kText;
    EXPECT_EQ(variable.most > variable.least,
              variable.value == EnvironmentValue::kWhole || variable.value == EnvironmentValue::kNumber)
        << variable.name;
    EXPECT_EQ(std::string(variable.accepted) == "0 or 1", variable.value == EnvironmentValue::kFlag) << variable.name;
    const Setting nonsense(variable, "nonsense");
    const std::string said = refusal_of([&] { environment::check(variable); });
    EXPECT_EQ(said.starts_with(std::string(variable.name) + "=nonsense in the environment: expected "), !is_text)
        << variable.name << ": " << said;
  }
  const Setting flag(environment::kCheck, "1");
  const Setting number(environment::kTimeout, "30");
  const Setting whole(environment::kMinBytes, "0");
  EXPECT_NO_THROW(environment::check(environment::kCheck));
  EXPECT_NO_THROW(environment::check(environment::kTimeout));
  EXPECT_NO_THROW(environment::check(environment::kMinBytes));
}

TEST(Environment, EveryVariableIsDescribedOnce) {
  std::set<std::string> names;
  for (const EnvironmentVariable& variable : environment::kAll) {
    EXPECT_TRUE(std::string(variable.name).starts_with("GAR_")) << variable.name;
    EXPECT_TRUE(names.insert(variable.name).second) << variable.name;
    EXPECT_TRUE(std::string(variable.sentence).ends_with(".")) << variable.name;
    EXPECT_NE(std::string(variable.accepted), "") << variable.name;
    EXPECT_NE(std::string(variable.otherwise), "") << variable.name;
  }
}

}  // namespace
}  // namespace gar
