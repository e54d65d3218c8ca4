// The closed forms for one switch, by hand. All parameters are powers of two, so that every value below is exact.
//
// A step in which f servers exchange pieces of s floats, e(f) = max(w(f) - w_t, 0):
//     alpha + (f-1) s (beta + e(f) epsilon) + (f-1) s gamma + (f+1) s delta        ReduceScatter
//     alpha + (f-1) s (beta + e(f) epsilon)                                       AllGather
#include <gtest/gtest.h>

#include <string>

#include "gar/errors.hpp"
#include "gar/model.hpp"
#include "support/terms.hpp"

namespace gar {
namespace {

OneSwitch params(double incast_threshold = 2, IncastDegree degree = IncastDegree::kSenders) {
  return {3, 0.25, 0.125, 0.0625, 0.03125, incast_threshold, degree};  // alpha beta gamma delta epsilon
}
constexpr IncastDegree kParticipants = IncastDegree::kParticipants;

Terms terms(double alpha, double beta, double gamma, double delta, double epsilon) {
  return {alpha, beta, gamma, delta, epsilon};
}

TEST(Terms, AddAndScale) {
  const Terms a{1, 2, 3, 4, 5};
  EXPECT_EQ(a.total(), 15);
  EXPECT_EQ(a + a, 2 * a);
  Terms b;
  b += a;
  EXPECT_EQ(b, a);
  EXPECT_EQ(b - a, Terms{});
}

TEST(Terms, LargestFirst) {
  const auto parts = largest_first({.alpha = 1, .gamma = -3, .epsilon = 1});
  EXPECT_EQ(parts[0].term->name, "gamma");
  EXPECT_EQ(parts[0].seconds, -3);
  EXPECT_EQ(parts[1].term->name, "alpha");  // ties keep the order of the table
  EXPECT_EQ(parts[2].term->name, "epsilon");
}

// N = 4, S = 64: one step of f = 4, s = 16.
//   alpha 2*3   beta 2*3*16/4   gamma 3*16/8   delta 5*16/16   epsilon 2*3*16*e/32, e = 3-2 (senders), 4-2 (all)
TEST(ClosedForms, Cps) {
  EXPECT_EQ(closed_cps(4, 64, params()), terms(6, 24, 6, 5, 3));
  EXPECT_EQ(closed_cps(4, 64, params(2, kParticipants)), terms(6, 24, 6, 5, 6));
  EXPECT_EQ(closed_cps(4, 64, params(3)), terms(6, 24, 6, 5, 0));
}

// N = 4, S = 64: everything goes to one server and back. The broadcast has one sender, so only the way in has incast.
//   alpha 2*3   beta 2*3*64/4   gamma 3*64/8   delta 5*64/16   epsilon 3*64*(e(4) + e(2))/32
TEST(ClosedForms, ReduceBroadcast) {
  EXPECT_EQ(closed_reduce_broadcast(4, 64, params()), terms(6, 96, 24, 20, 6));
  EXPECT_EQ(closed_reduce_broadcast(4, 64, params(2, kParticipants)), terms(6, 96, 24, 20, 12));
  // w_t = 0: the single sender of the broadcast exceeds it too, 3*64*(3 + 1)/32.
  EXPECT_EQ(closed_reduce_broadcast(4, 64, params(0)).epsilon, 24);
}

// N = 4, S = 64: 3 steps of f = 2, s = 16 each way.
//   alpha 2*3*3   beta 2*3*16/4   gamma 3*16/8   delta 3*3*16/16
TEST(ClosedForms, Ring) {
  EXPECT_EQ(closed_ring(4, 64, params()), terms(18, 24, 6, 9, 0));
  // w_t = 0: 2*3*16*(1 - 0)/32.
  EXPECT_EQ(closed_ring(4, 64, params(0)).epsilon, 3);
}

// S = 64. N = 4: f = 2 with s = 32, then 16.  N = 6: two servers fold first, f = 2 with s = 64.
//   s = 64: alpha 6  beta 32  gamma 8  delta 12
//   s = 32: alpha 6  beta 16  gamma 4  delta 6
//   s = 16: alpha 6  beta  8  gamma 2  delta 3
TEST(ClosedForms, Rhd) {
  EXPECT_EQ(closed_rhd(4, 64, params()), terms(12, 24, 6, 9, 0));
  EXPECT_EQ(closed_rhd(6, 64, params()), terms(18, 56, 14, 21, 0));
  EXPECT_EQ(closed_rhd(7, 64, params()), closed_rhd(6, 64, params()));
}

// N = 6, S = 96, 3 x 2: f = 3 with s = 32, then f = 2 with s = 16.
//   f = 3: alpha 6  beta 2*2*32/4  gamma 2*32/8  delta 4*32/16  epsilon 2*2*32*e(3)/32
//   f = 2: alpha 6  beta 2*16/4    gamma 16/8    delta 3*16/16
TEST(ClosedForms, Hcps) {
  EXPECT_EQ(closed_hcps({3, 2}, 96, params()), terms(12, 40, 10, 11, 0));
  EXPECT_EQ(closed_hcps({3, 2}, 96, params(2, kParticipants)), terms(12, 40, 10, 11, 4));
  // 2 x 3: s = 48, then 16. delta (3*48 + 4*16)/16: the smaller fan-in first reads more.
  EXPECT_EQ(closed_hcps({2, 3}, 96, params()), terms(12, 40, 10, 13, 0));
  EXPECT_EQ(closed_hcps({4}, 64, params()), closed_cps(4, 64, params()));
  EXPECT_EQ(closed_hcps({2, 2, 2}, 64, params()), closed_rhd(8, 64, params()));
}

// N = 6, S = 96, 3 x 2: two steps of f = 2, s = 32, then one of s = 16, each way.
//   alpha 2*(2+1)*3   beta 2*(2*32 + 16)/4   gamma (2*32 + 16)/8   delta 3*(2*32 + 16)/16
TEST(ClosedForms, HierarchicalRing) {
  EXPECT_EQ(closed_hierarchical_ring({3, 2}, 96, params()), terms(18, 40, 10, 15, 0));
  EXPECT_EQ(closed_hierarchical_ring({4}, 64, params()), closed_ring(4, 64, params()));
}

TEST(ClosedForms, OneServerCostsNothing) {
  const Terms nothing;
  EXPECT_EQ(closed_reduce_broadcast(1, 64, params()), nothing);
  EXPECT_EQ(closed_ring(1, 64, params()), nothing);
  EXPECT_EQ(closed_rhd(1, 64, params()), nothing);
  EXPECT_EQ(closed_cps(1, 64, params()), nothing);
  EXPECT_EQ(closed_hcps({}, 64, params()), nothing);
  EXPECT_EQ(closed_hierarchical_ring({}, 64, params()), nothing);
  EXPECT_EQ(printed_rhd(1, 64, params()), nothing);
}

// Printed: incast on the way back too, 2*3*64*1/32; and in the (alpha,beta,gamma) table twice the additions.
TEST(PrintedForms, ReduceBroadcast) {
  EXPECT_EQ(printed_reduce_broadcast(4, 64, params()), terms(6, 96, 24, 20, 12));
  EXPECT_EQ(printed_abc_reduce_broadcast(4, 64, params()), terms(6, 96, 48, 0, 0));
}

// Printed with the volume of N = 6 instead of the power of two below it, S = 96:
//   beta (2*5/6 + 2)*96/4   gamma (5/6 + 1)*96/8   delta 3*(5/6 + 1)*96/16
TEST(PrintedForms, Rhd) {
  EXPECT_TRUE(test::terms_close(printed_rhd(6, 96, params()), terms(18, 88, 22, 33, 0)));
  EXPECT_TRUE(test::terms_close(closed_rhd(6, 96, params()), terms(18, 84, 21, 31.5, 0)));
  EXPECT_TRUE(test::terms_close(printed_rhd(8, 64, params()), closed_rhd(8, 64, params())));
}

// The sum over products of the leading factors and over those of the trailing ones agree for two steps only.
//   2 x 3 x 4, S = 24*16: printed 2*(3 + 3*4) + 25 = 55, derived 2*(3*4 + 4) + 25 = 57, times S delta / 24 = 1
TEST(PrintedForms, HcpsDelta) {
  EXPECT_TRUE(test::terms_close(printed_hcps({3, 2}, 96, params(9)), closed_hcps({3, 2}, 96, params(9))));
  EXPECT_NEAR(printed_hcps({2, 3, 4}, 384, params()).delta, 55, 1e-9);
  EXPECT_NEAR(closed_hcps({2, 3, 4}, 384, params()).delta, 57, 1e-9);
}

// 3 x 2, N = 6, S = 96, w = f, w_t = 1.
//   printed: (3-1)(3-1) 6/6 + (2-1)(3-1) 2/6 = 14/3, times S epsilon = 3
//   derived: 2 [(3-1)(3-1) 2/6 + (2-1)(2-1) 1/6] = 3, times S epsilon = 3
TEST(PrintedForms, HcpsEpsilon) {
  EXPECT_NEAR(printed_hcps({3, 2}, 96, params(1, kParticipants)).epsilon, 14, 1e-9);
  EXPECT_NEAR(closed_hcps({3, 2}, 96, params(1, kParticipants)).epsilon, 9, 1e-9);
}

TEST(ClosedForms, ByName) {
  const auto by_name = [](const char* text) { return closed_form(parse_algorithm(text), 6, 96, params()); };
  EXPECT_EQ(by_name("ring"), closed_ring(6, 96, params()));
  EXPECT_EQ(by_name("rhd"), closed_rhd(6, 96, params()));
  EXPECT_EQ(by_name("cps"), closed_cps(6, 96, params()));
  EXPECT_EQ(by_name("reduce-broadcast"), closed_reduce_broadcast(6, 96, params()));
  EXPECT_EQ(by_name("hcps:3x2"), closed_hcps({3, 2}, 96, params()));
  EXPECT_EQ(by_name("hring:3x2"), closed_hierarchical_ring({3, 2}, 96, params()));
  for (const char* none : {"hcps", "hring", "hcps:~3x2", "acps:4+2", "gentree"}) EXPECT_FALSE(by_name(none)) << none;
}

// A bound that is too high would hide a plan from the predictor, so what has no closed form has no bound.
TEST(ClosedForms, BoundsOnlyWhereAFormIsKnown) {
  const auto bound = [](const AlgorithmSpec& spec) { return closed_bound(spec, 6, 96, params()); };
  ASSERT_TRUE(bound(parse_algorithm("hcps:3x2")));
  EXPECT_EQ(bound(parse_algorithm("hcps:3x2"))->seconds, closed_hcps({3, 2}, 96, params()).total());
  EXPECT_EQ(bound(parse_algorithm("hcps:3x2"))->num_steps, 2);
  EXPECT_EQ(bound(parse_algorithm("hring:3x2"))->num_steps, 3);
  ASSERT_TRUE(bound(parse_algorithm("hcps:~2x3")));
  EXPECT_LT(bound(parse_algorithm("hcps:~2x3"))->seconds, closed_hcps({2, 3}, 96, params()).total());
  EXPECT_FALSE(bound(parse_algorithm("acps:4+2")));
  EXPECT_FALSE(bound({"unknown", {3, 2}, false}));
  EXPECT_FALSE(bound({"hcps", {}, false}));
}

TEST(OneSwitchParams, OfAStar) {
  const PaperParams paper;
  const OneSwitch p = one_switch_params(make_tree({5}), kParticipants);
  EXPECT_DOUBLE_EQ(p.alpha, 3 * paper.alpha);
  EXPECT_EQ(p.beta, paper.server_link.beta);
  EXPECT_EQ(p.epsilon, paper.server_link.epsilon);
  EXPECT_EQ(p.incast_threshold, paper.server_link.incast_threshold);
  EXPECT_EQ(p.gamma, paper.server.gamma);
  EXPECT_EQ(p.delta, paper.server.delta);
  EXPECT_EQ(p.degree, kParticipants);
}

TEST(OneSwitchParams, OnlyOfAStarWithEqualServers) {
  EXPECT_THROW((void)one_switch_params(make_tree({2, 2})), InvalidArgument);
  Node slow{"slow", 1, {2, 0, 0}, {}, {}};
  Node fast{"fast", 1, {1, 0, 0}, {}, {}};
  Node root{"root", 1, {}, {}, {{0, 1}, {1, 2}}};
  const Topology unequal("unequal", {slow, fast, root}, 2);
  try {
    (void)one_switch_params(unequal);
    FAIL() << "must throw";
  } catch (const InvalidArgument& e) {
    EXPECT_NE(std::string(e.what()).find("'unequal' is not one switch with equal servers"), std::string::npos);
  }
}

}  // namespace
}  // namespace gar
