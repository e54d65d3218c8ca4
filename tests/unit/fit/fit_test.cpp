// What the fit does with measurements by hand: exact ones, too few, ones that cannot tell parameters apart.
#include "gar/fit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "gar/errors.hpp"
#include "gar/fit_report.hpp"
#include "gar/profile_io.hpp"
#include "support/synthetic_fit.hpp"

namespace gar {
namespace {

using test::collective_observation;
using test::Noise;
using test::reduction_observation;
using test::simulate_times;
using test::Truth;
using test::usual_observations;

const Truth kTruth{1e-4, 1e-8, 1e-9, 5e-10, 6e-10, 4};
const Truth kTruthWithMu{1e-4, 1e-8, 1e-9, 5e-10, 6e-10, 4, 2e-5};

Measurements exact(std::vector<Observation> observations, const Truth& truth = kTruth) {
  Measurements out{make_tree({15}), 0, std::move(observations), {}, {}, false};
  std::mt19937_64 random(1);
  simulate_times(out.observations, truth, out.topology, {0, 0, 0}, 3, random);
  return out;
}

std::string message_of(const Measurements& measurements) {
  try {
    (void)fit(measurements, {1, 10, false});
  } catch (const InvalidArgument& e) {
    return e.what();
  }
  return "";
}

bool has_note(const Profile& profile, const std::string& text) {
  return std::any_of(profile.notes.begin(), profile.notes.end(),
                     [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

// cps on n servers: alpha 2, beta and gamma 2 (n-1)/n S and (n-1)/n S, delta (n+1)/n S, epsilon beyond w_t = 4.
TEST(Fit, PredictsWhatTheClosedFormSays) {
  const Profile profile = test::profile_of(kTruth, make_tree({15}));
  for (const std::int64_t n : {2, 7, 15}) {
    const OneSwitch p{kTruth.alpha,          kTruth.beta,    kTruth.gamma,
                      kTruth.delta,          kTruth.epsilon, kTruth.incast_threshold,
                      IncastDegree::kSenders};
    const Observation cps = collective_observation(Collective::kAllReduce, "cps", n, 1e6);
    EXPECT_NEAR(predict_seconds(cps, profile), closed_cps(n, 1e6, p).total(), 1e-12);
    const Observation ring = collective_observation(Collective::kAllReduce, "ring", n, 1e6);
    EXPECT_NEAR(predict_seconds(ring, profile), closed_ring(n, 1e6, p).total(), 1e-12);
    const Observation rhd = collective_observation(Collective::kAllReduce, "rhd", n, 1e6);
    EXPECT_NEAR(predict_seconds(rhd, profile), closed_rhd(n, 1e6, p).total(), 1e-12);
  }
  const Observation six = collective_observation(Collective::kAllReduce, "cps", 15, 1e6);
  const Terms abc = closed_cps(15, 1e6, {kTruth.alpha, kTruth.beta, kTruth.gamma, 0, 0, 0, IncastDegree::kSenders});
  EXPECT_NEAR(predict_seconds(six, profile, ModelKind::kAbc), abc.total(), 1e-12);
}

// x - 1 = 6 senders at one link, 4 of them free.
TEST(Fit, PredictsManyToOne) {
  Observation gather;
  gather.kind = ObservationKind::kGather;
  gather.servers = test::first_servers(7);
  gather.size_floats = 1e5;
  const Profile profile = test::profile_of(kTruth, make_tree({15}));
  EXPECT_NEAR(predict_seconds(gather, profile), kTruth.alpha + 6e5 * (kTruth.beta + 2 * kTruth.epsilon), 1e-15);
}

TEST(Fit, ExactTimesGiveExactParameters) {
  const Profile profile = fit(exact(usual_observations(15, 2e4, 1e6)), {1, 20, true});
  const LevelProfile& level = profile.levels.at(0);
  EXPECT_NEAR(level.alpha.value / kTruth.alpha, 1, 1e-3);
  EXPECT_NEAR(level.beta.value / kTruth.beta, 1, 1e-3);
  EXPECT_NEAR(level.epsilon.value / kTruth.epsilon, 1, 1e-3);
  EXPECT_EQ(level.incast_threshold.value, 4);
  EXPECT_NEAR(profile.gamma.value / kTruth.gamma, 1, 1e-3);
  EXPECT_NEAR(profile.delta.value / kTruth.delta, 1, 1e-3);
  EXPECT_EQ(level.incast, Incast::kPresent);
  EXPECT_TRUE(profile.corrections.empty());
  EXPECT_EQ(profile.residuals.size(), usual_observations(15, 2e4, 1e6).size());
  const Node& server = profile.topology.node(0);
  EXPECT_EQ(server.uplink.epsilon, level.epsilon.value);
  EXPECT_EQ(server.uplink.incast_threshold, 4);
}

std::vector<Observation> with_short(std::vector<Observation> observations, std::int64_t num_ranks) {
  const std::vector<Observation> more = test::short_observations(num_ranks);
  observations.insert(observations.end(), more.begin(), more.end());
  return observations;
}

// A mesh of n: alpha + 2 (n - 1) mu; a shift: (n - 1) (alpha + 2 mu); n to 1: alpha + n mu.
TEST(Fit, PredictsWhatMessagesCost) {
  const Profile profile = test::profile_of({.alpha = 8, .beta = 0, .gamma = 0, .delta = 0, .mu = 1}, make_tree({15}));
  for (const std::int64_t n : {3, 7}) {
    const auto others = static_cast<double>(n - 1);
    const Observation mesh = collective_observation(Collective::kAllGather, "cps", n, 1e6);
    EXPECT_DOUBLE_EQ(predict_seconds(mesh, profile), 8 + 2 * others);
    const Observation shift = collective_observation(Collective::kAllGather, "ring", n, 1e6);
    EXPECT_DOUBLE_EQ(predict_seconds(shift, profile), others * 10);
    EXPECT_DOUBLE_EQ(predict_seconds(shift, profile, ModelKind::kPaper), others * 8);
    Observation gather;
    gather.kind = ObservationKind::kGather;
    gather.servers = test::first_servers(n);
    gather.size_floats = 10;
    EXPECT_DOUBLE_EQ(predict_seconds(gather, profile), 8 + others + 1);
  }
  EXPECT_EQ(predict_seconds(reduction_observation(4, 3, 10), profile), 0);
}

TEST(Fit, ExactTimesOfShortVectorsGiveMu) {
  const Profile profile =
      fit(exact(with_short(usual_observations(15, 2e4, 1e6), 15), kTruthWithMu), {.num_bootstrap = 20});
  EXPECT_TRUE(profile.mu.is_identified);
  EXPECT_NEAR(profile.mu.value / kTruthWithMu.mu, 1, 1e-3);
  EXPECT_LE(profile.mu.low, profile.mu.value);
  EXPECT_GE(profile.mu.high, profile.mu.value);
  EXPECT_NEAR(profile.levels[0].alpha.value / kTruthWithMu.alpha, 1, 1e-3);
  EXPECT_NEAR(profile.levels[0].epsilon.value / kTruthWithMu.epsilon, 1, 1e-2);
  EXPECT_EQ(profile.topology.node(0).server.mu, profile.mu.value);
  // Asked not to, it finds none, and explains less.
  const Profile without =
      fit(exact(with_short(usual_observations(15, 2e4, 1e6), 15), kTruthWithMu), {.num_bootstrap = 0, .fit_mu = false});
  EXPECT_EQ(without.mu.value, 0);
  EXPECT_FALSE(without.mu.is_identified);
  EXPECT_GT(without.levels[0].alpha.value, 1.1 * kTruthWithMu.alpha);
}

// With noise the interval holds the truth; where messages cost nothing, mu is 0 and its interval begins there.
TEST(Fit, NoisyTimesGiveMuWithAnInterval) {
  for (const double mu : {0.0, 2e-5}) {
    Truth truth = kTruthWithMu;
    truth.mu = mu;
    Measurements noisy{make_tree({15}), 0, with_short(usual_observations(15, 2e4, 1e6), 15), {}, {}, false};
    std::mt19937_64 random(7);
    simulate_times(noisy.observations, truth, noisy.topology, {}, 10, random);
    const Profile profile = fit(noisy, {.num_bootstrap = 100});
    EXPECT_TRUE(profile.mu.is_identified) << mu;
    EXPECT_LE(profile.mu.low, mu);
    EXPECT_GE(profile.mu.high, mu);
    if (mu == 0) {
      EXPECT_EQ(profile.mu.value, 0);
    } else {
      EXPECT_NEAR(profile.mu.value / mu, 1, 0.1);
    }
  }
}

// Without short vectors among three ranks or more there is nothing that tells mu from alpha.
TEST(Fit, SaysThatMuIsPartOfAlpha) {
  std::vector<Observation> long_ones;
  for (std::int64_t n = 2; n <= 15; ++n) {
    for (const double size : {1e6, 4e6, 1e7}) {
      long_ones.push_back(collective_observation(Collective::kAllGather, "cps", n, size));
      long_ones.push_back(collective_observation(Collective::kAllReduce, "cps", n, size));
    }
  }
  const Profile profile = fit(exact(long_ones, kTruthWithMu), {1, 0, false});
  EXPECT_FALSE(profile.mu.is_identified);
  EXPECT_EQ(profile.mu.value, 0);
  EXPECT_TRUE(has_note(profile, "what handling a message costs (mu) cannot be told from alpha"));
}

// GenModel without mu stands next to GenModel, with parameters of its own, and errs more.
TEST(Validate, ShowsWhatMuIsGoodFor) {
  Measurements measured = exact(with_short(usual_observations(15, 2e4, 1e6), 15), kTruthWithMu);
  std::vector<Observation> held_out;
  for (const char* algorithm : {"ring", "rhd", "cps", "hcps:3x4"}) {
    held_out.push_back(collective_observation(Collective::kAllReduce, algorithm, 12, 64));
  }
  std::mt19937_64 random(1);
  simulate_times(held_out, kTruthWithMu, measured.topology, {0, 0, 0}, 3, random);
  for (Observation& one : held_out) one.is_fitted = false;
  const Profile profile = fit(measured, {.num_bootstrap = 0});
  measured.observations.insert(measured.observations.end(), held_out.begin(), held_out.end());
  const std::vector<ValidationScore> scores = validate(profile, measured.observations);
  ASSERT_EQ(scores.size(), 3U);
  EXPECT_EQ(scores[0].name, "GenModel");
  EXPECT_EQ(scores[1].name, "GenModel without mu");
  EXPECT_EQ(scores[2].name, "(alpha,beta,gamma)");
  EXPECT_LT(scores[0].max_error, 0.02);
  EXPECT_GT(scores[1].max_error, 0.1);
}

// Section 3.4 of the paper: CPS alone tells 2 beta + gamma.
TEST(Fit, SaysThatCpsAloneCannotTellBetaFromGamma) {
  std::vector<Observation> observations;
  for (std::int64_t n = 2; n <= 15; ++n) {
    for (const double size : {100.0, 2e4, 1e6})
      observations.push_back(collective_observation(Collective::kAllReduce, "cps", n, size));
  }
  const Profile profile = fit(exact(observations), {1, 20, false});
  EXPECT_TRUE(has_note(profile, "beta and gamma cannot be told apart")) << profile.notes.size();
  EXPECT_FALSE(profile.levels[0].beta.is_identified);
  EXPECT_FALSE(profile.gamma.is_identified);
  EXPECT_NEAR(profile.two_beta_plus_gamma.value / (2 * kTruth.beta + kTruth.gamma), 1, 1e-3);
  EXPECT_NEAR(profile.delta.value / kTruth.delta, 1, 1e-2);
  EXPECT_NEAR(profile.levels[0].epsilon.value / kTruth.epsilon, 1, 1e-2);
}

TEST(Fit, SaysThatAThresholdAboveTheRangeCannotBeSeen) {
  Truth truth = kTruth;
  truth.incast_threshold = 20;
  const Profile profile = fit(exact(usual_observations(8, 2e4, 1e6), truth), {1, 20, false});
  EXPECT_EQ(profile.levels[0].incast, Incast::kNone);
  EXPECT_EQ(profile.levels[0].epsilon.value, 0);
  EXPECT_TRUE(has_note(profile, "no incast with up to 7 senders; a threshold above that cannot be seen"));
}

TEST(Fit, SaysThatTwoRanksShowNoIncast) {
  const Profile profile = fit(exact(usual_observations(2, 2e4, 1e6)), {1, 20, false});
  EXPECT_EQ(profile.levels[0].incast, Incast::kUnknown);
  EXPECT_TRUE(has_note(profile, "incast was not measured"));
}

TEST(Fit, RefusesTooFewMeasurements) {
  std::vector<Observation> few = {collective_observation(Collective::kAllReduce, "cps", 4, 1e5),
                                  collective_observation(Collective::kAllReduce, "cps", 5, 1e5)};
  EXPECT_NE(message_of(exact(few)).find("2 different measurements are too few"), std::string::npos)
      << message_of(exact(few));
  EXPECT_NE(message_of(exact({})).find("too few"), std::string::npos);
}

TEST(Fit, RefusesConstantTimes) {
  Measurements constant = exact(usual_observations(15, 2e4, 1e6));
  for (Observation& one : constant.observations) one.seconds.assign(5, 0.01);
  EXPECT_NE(message_of(constant).find("all times are the same"), std::string::npos) << message_of(constant);
}

TEST(Fit, RefusesImpossibleTimesAndServers) {
  Measurements wrong = exact(usual_observations(15, 2e4, 1e6));
  wrong.observations[3].seconds = {1e-3, -1};
  EXPECT_NE(message_of(wrong).find("a time of -1 s; expected times from 1e-12 to 1e+09 s"), std::string::npos)
      << message_of(wrong);
  wrong = exact(usual_observations(15, 2e4, 1e6));
  wrong.observations.back().servers = {0, 15};
  EXPECT_NE(message_of(wrong).find("server 15: expected 0 to 14"), std::string::npos) << message_of(wrong);
  wrong = exact(usual_observations(15, 2e4, 1e6));
  wrong.observations.back().algorithm = parse_algorithm("gentree+");
  EXPECT_NE(message_of(wrong).find("'gentree+' is planned for a network"), std::string::npos) << message_of(wrong);
}

// One time that is far too small must not count as exactly known.
TEST(Fit, IsNotLedAstrayByAnOutlier) {
  for (const double factor : {1.0 / 100, 1.0 / 30, 30.0, 100.0}) {
    SCOPED_TRACE(factor);
    Measurements measured = exact(usual_observations(15, 2e4, 1e6));
    for (double& s : measured.observations.back().seconds) s *= factor;
    const Profile profile = fit(measured, {1, 20, false});
    EXPECT_NEAR(profile.two_beta_plus_gamma.value / (2 * kTruth.beta + kTruth.gamma), 1, 0.02);
    EXPECT_NEAR(profile.levels[0].alpha.value / kTruth.alpha, 1, 0.02);
    EXPECT_NEAR(profile.levels[0].epsilon.value / kTruth.epsilon, 1, 0.05);
    EXPECT_EQ(profile.levels[0].incast_threshold.value, 4);
  }
}

// With one number of ranks, senders and bandwidth cannot be told apart.
TEST(Fit, SaysThatOneNumberOfRanksCannotTellIncast) {
  std::vector<Observation> observations;
  for (const double size : {1.0, 1e2, 1e3, 1e4, 3e4, 1e5, 3e5, 1e6})
    observations.push_back(collective_observation(Collective::kAllReduce, "cps", 12, size));
  const Profile profile = fit(exact(observations), {1, 20, false});
  EXPECT_EQ(profile.levels[0].incast, Incast::kUnknown);
  EXPECT_FALSE(profile.levels[0].epsilon.is_identified);
  EXPECT_FALSE(profile.two_beta_plus_gamma.is_identified);
  EXPECT_TRUE(has_note(profile, "cannot tell whether there is incast"));
}

// The same file twice says nothing new.
TEST(Fit, CountsTheSameThingOnce) {
  Measurements twice = exact(usual_observations(15, 2e4, 1e6));
  const std::vector<Observation> once = twice.observations;
  twice.observations.insert(twice.observations.end(), once.begin(), once.end());
  EXPECT_EQ(fit(twice, {1, 10, false}).residuals.size(), once.size());
  const std::vector<Observation> few(20, collective_observation(Collective::kAllReduce, "cps", 4, 1e5));
  EXPECT_NE(message_of(exact(few)).find("1 different measurements are too few"), std::string::npos)
      << message_of(exact(few));
}

// Racks whose uplinks nobody can fill: what they could carry is not known.
TEST(Fit, SaysThatALevelNeverWasTheBottleneck) {
  const Topology shape = make_tree({3, 4});
  Profile truth = test::profile_of(kTruth, shape);
  truth.levels.push_back(truth.levels[0]);
  truth.levels[1].beta.value = kTruth.beta / 100;
  truth.levels[1].epsilon.value = 0;
  Measurements measured{shape, 0, usual_observations(12, 2e4, 1e6), {}, {}, false};
  for (Observation& one : measured.observations) one.seconds = {predict_seconds(one, truth)};
  const Profile profile = fit(measured, {1, 10, false});
  EXPECT_NEAR(profile.levels[0].beta.value / kTruth.beta, 1, 0.02);
  EXPECT_FALSE(profile.levels[1].beta.is_identified);
  EXPECT_GE(profile.levels[1].beta.value, kTruth.beta / 100);
  EXPECT_EQ(profile.levels[1].incast, Incast::kUnknown);
  EXPECT_TRUE(has_note(profile, "never the bottleneck"));
}

// A straight rise of 5% of beta per sender: incast if packets are lost, otherwise a drift.
TEST(Fit, AsksTheCountersAboutAStraightRise) {
  Truth line = kTruth;
  line.incast_threshold = 1;
  line.epsilon = 0.05 * line.beta;
  Measurements measured = exact(usual_observations(15, 2e4, 1e6), line);
  EXPECT_EQ(fit(measured, {1, 10, false}).levels[0].incast, Incast::kPresent);
  for (const bool is_lossy : {false, true}) {
    for (Observation& one : measured.observations) one.retransmits = is_lossy ? 1e4 : 10;
    const Profile profile = fit(measured, {1, 10, false});
    EXPECT_EQ(profile.levels[0].incast, is_lossy ? Incast::kPresent : Incast::kDrift);
    EXPECT_NEAR(profile.levels[0].epsilon.value / line.epsilon, 1, 0.02);
  }
}

// Receivers that admit two senders see no incast; everybody at once does.
TEST(Fit, KeepsAdmittedAndFreeSendersApart) {
  Measurements both = exact(usual_observations(15, 2e4, 1e6));
  Truth admitted = kTruth;
  admitted.epsilon = 0;
  Measurements second = exact(usual_observations(15, 2e4, 1e6), admitted);
  for (Observation& one : second.observations) {
    if (one.kind == ObservationKind::kReduction) continue;
    one.max_senders = 2;
    both.observations.push_back(one);
  }
  const Profile profile = fit(both, {1, 20, false});
  const LevelProfile& level = profile.levels.at(0);
  EXPECT_EQ(level.max_senders, 2);
  EXPECT_EQ(level.incast, Incast::kNone);
  EXPECT_EQ(level.free_incast, Incast::kPresent);
  EXPECT_NEAR(level.free_epsilon.value / kTruth.epsilon, 1, 1e-2);
  EXPECT_EQ(level.free_incast_threshold.value, 4);
  EXPECT_EQ(profile.topology.node(0).uplink.max_senders, 2);
}

// Ranks on 2 cores: with n of them everything takes n / 2 times as long.
TEST(Fit, KnowsRanksThatShareCores) {
  const Topology shape = make_tree({8});
  Profile truth = test::profile_of({1e-5, 1e-9, 1e-10, 2e-10, 0, 1}, shape);
  truth.cores = 2;
  truth.is_memory = true;
  Measurements measured{shape, 2, usual_observations(8, 2e4, 1e6), {}, {}, true};
  measured.observations.push_back(reduction_observation(4, 1, 1e6));
  for (Observation& one : measured.observations) one.seconds = {predict_seconds(one, truth)};
  const Profile profile = fit(measured, {1, 10, false});
  EXPECT_NEAR(profile.levels[0].beta.value / 1e-9, 1, 1e-3);
  EXPECT_NEAR(profile.delta.value / 2e-10, 1, 1e-3);
  EXPECT_NEAR(profile.topology.node(0).server.delta / 8e-10, 1, 1e-3);
}

// What holds for all of a size class, with one sender too, is no parameter; it is corrected, and shown as what it is.
TEST(Fit, CorrectsASizeClassThatIsOffAltogether) {
  Measurements measured = exact(usual_observations(15, 2e4, 1e6));
  for (Observation& one : measured.observations) {
    if (one.kind != ObservationKind::kCollective || one.size_floats < 1e6) continue;
    const bool is_shift = one.collective == Collective::kAllGather && one.algorithm.name == "ring";
    if (one.collective != Collective::kAllReduce && !is_shift) continue;
    for (double& s : one.seconds) s *= 1.2;
  }
  const Profile profile = fit(measured, {1, 10, true});
  const auto is_there = [](const SizeCorrection& c) { return c.from_bytes <= 4e6 && 4e6 < c.to_bytes; };
  const auto found = std::find_if(profile.corrections.begin(), profile.corrections.end(), is_there);
  ASSERT_NE(found, profile.corrections.end());
  EXPECT_GT(found->factor.value, 1.05);
  EXPECT_TRUE(fit(measured, {1, 10, false}).corrections.empty());
}

TEST(Validate, KnowsErrorsAndRegret) {
  Measurements measured = exact(usual_observations(15, 2e4, 1e6));
  const Profile profile = fit(measured, {1, 10, false});
  // Predictions are exact, so the choice is, too; the library takes twice the time of the best.
  double best = 1e9;
  for (const char* algorithm : {"ring", "rhd", "cps", "hcps:5x3"}) {
    Observation one = collective_observation(Collective::kAllReduce, algorithm, 15, 3e5);
    one.is_fitted = false;
    one.seconds = {predict_seconds(one, test::profile_of(kTruth, measured.topology))};
    best = std::min(best, one.seconds[0]);
    measured.observations.push_back(one);
  }
  Observation native = measured.observations.back();
  native.is_native = true;
  native.seconds = {2 * best};
  measured.observations.push_back(native);
  const std::vector<ValidationScore> scores = validate(profile, measured.observations);
  ASSERT_EQ(scores.size(), 3U);
  EXPECT_EQ(scores[0].name, "GenModel");
  EXPECT_EQ(scores[0].num_cells, 4);
  EXPECT_EQ(scores[0].num_cases, 1);
  EXPECT_LT(scores[0].max_error, 1e-2);
  EXPECT_EQ(scores[0].max_regret, 0);
  EXPECT_GT(scores[1].max_error, 5 * scores[0].max_error);
  EXPECT_NEAR(scores[2].median_regret, 1, 1e-9);
  EXPECT_LT(scores[2].median_error, 0);
  // 4e6 bytes, and four times as much; the MPI library's own was measured with the shorter vectors.
  Observation longer = measured.observations[measured.observations.size() - 2];
  longer.size_floats *= 8;
  longer.seconds = {2 * predict_seconds(longer, profile)};
  measured.observations.push_back(longer);
  const std::vector<ValidationScore> by_size = validate_by_size(profile, measured.observations);
  ASSERT_EQ(by_size.size(), 5U);
  EXPECT_EQ(by_size[0].name, "GenModel");
  EXPECT_EQ(by_size[0].num_cells, 4);
  EXPECT_EQ(by_size[2].num_cells, 1);
  EXPECT_EQ(by_size[3].name, "GenModel");
  EXPECT_EQ(by_size[3].num_cells, 1);
  EXPECT_NEAR(by_size[3].median_error, 0.5, 1e-6);
  EXPECT_LT(by_size[3].median_regret, 0);  // one algorithm is no choice
  EXPECT_EQ(by_size[3].from_bytes, by_size[0].to_bytes);
  EXPECT_EQ(by_size[0].to_bytes, 8 * by_size[0].from_bytes);
  EXPECT_LE(by_size[0].from_bytes, 4 * measured.observations.back().size_floats / 8);
}

// A link that is slower than the others is so in predictions, too.
TEST(Validate, KnowsSingleSlowLinks) {
  const Topology shape = make_tree({4});
  const Profile even = test::profile_of(kTruth, shape);
  Profile uneven = even;
  std::vector<Node> nodes = {lay_over(even, shape).node(0), lay_over(even, shape).node(0), {}};
  nodes[1].uplink.beta *= 3;
  nodes[2].children = {{0, 3}, {1, 1}};
  uneven.topology = Topology("uneven", nodes, 2);
  Profile with_topology = even;
  with_topology.topology = lay_over(even, shape);
  const Observation ring = collective_observation(Collective::kAllReduce, "ring", 4, 1e6);
  const double beta_part = 2 * 0.75 * 1e6 * kTruth.beta;
  EXPECT_NEAR(predict_seconds(ring, uneven) - predict_seconds(ring, with_topology), 2 * beta_part, 1e-3 * beta_part);
}

TEST(Validate, NeedsSomethingHeldOut) {
  const Measurements measured = exact(usual_observations(15, 2e4, 1e6));
  const Profile profile = fit(measured, {1, 10, false});
  EXPECT_THROW((void)validate(profile, measured.observations), InvalidArgument);
}

// Networks for real (docs/validation.md): 15 hosts with small queues, which lose packets, and with large ones.
TEST(Validate, HoldsOnMeasuredNetworks) {
  const Measurements lossy = read_measurements_file("data/measurements/15-bbr.json");
  const Profile profile = fit(lossy, {1, 20, true});
  EXPECT_EQ(profile.levels[0].free_incast, Incast::kPresent);
  EXPECT_EQ(profile.levels[0].max_senders, 2);
  EXPECT_LT(profile.levels[0].epsilon.value, profile.levels[0].free_epsilon.value / 2);
  const std::vector<ValidationScore> scores = validate(profile, lossy.observations);
  ASSERT_EQ(scores.size(), 3U);
  EXPECT_LT(scores[0].median_error, 0.05);
  EXPECT_LT(scores[0].p95_error, 0.2);
  EXPECT_LT(scores[0].p95_regret, 0.1);
  EXPECT_GT(scores[1].p95_error, scores[0].p95_error);
  EXPECT_GT(scores[1].median_regret, 0.1);
  EXPECT_GT(scores[2].median_regret, 1);
  const Profile lossfree = fit(read_measurements_file("data/measurements/15-lossfree.json"), {1, 20, true});
  EXPECT_EQ(lossfree.levels[0].free_incast, Incast::kDrift);
  const Profile tree = fit(read_measurements_file("data/measurements/3x4-bbr.json"), {1, 20, true});
  ASSERT_EQ(tree.levels.size(), 2U);
  EXPECT_NEAR(tree.levels[1].beta.value / tree.levels[0].beta.value, 0.55, 0.15);
}

class Diagnose : public ::testing::Test {
 protected:
  static Diagnosis with(const Truth& now) {
    const Profile profile = fit(exact(usual_observations(15, 2e4, 1e6)), {1, 10, false});
    std::vector<Observation> results;
    for (const char* algorithm : {"ring", "cps", "hcps:5x3"}) {
      for (const double size : {1e2, 1e4, 1e6}) {
        Observation one = collective_observation(Collective::kAllReduce, algorithm, 15, size);
        one.seconds = {predict_seconds(one, test::profile_of(now, profile.topology))};
        results.push_back(one);
      }
    }
    return diagnose(profile, results);
  }
};

TEST_F(Diagnose, CallsNormalWhatIsNormal) {
  const Diagnosis d = with(kTruth);
  EXPECT_TRUE(d.is_normal);
  EXPECT_EQ(d.culprit, "");
  EXPECT_EQ(d.rows.size(), 9U);
}

TEST_F(Diagnose, FindsTheParameterAtFault) {
  Truth slow = kTruth;
  slow.beta *= 2.5;
  Diagnosis d = with(slow);
  EXPECT_FALSE(d.is_normal);
  EXPECT_EQ(d.culprit, "beta");
  EXPECT_NEAR(d.factor, 2.5, 0.05);
  Truth late = kTruth;
  late.alpha *= 4;
  d = with(late);
  EXPECT_EQ(d.culprit, "alpha");
  EXPECT_NEAR(d.factor, 4, 0.1);
  Truth lossy = kTruth;
  lossy.epsilon *= 5;
  d = with(lossy);
  EXPECT_EQ(d.culprit, "epsilon");
  EXPECT_NEAR(d.factor, 5, 0.2);
}

/// A profile with these errors of collectives and of reductions, and results that are 1.67 times too slow.
Diagnosis with_errors(double of_collectives, double of_reductions) {
  Profile profile = test::profile_of(kTruth, make_tree({15}));
  for (int i = 0; i < 20; ++i) {
    profile.residuals.push_back({"cps allreduce, 15 ranks, 1e5 floats", 1, 1 + of_collectives});
    profile.residuals.push_back({"reduction of 6 vectors, 1 rank, 16384 floats", 1, 1 + of_reductions});
    profile.residuals.push_back({"reduction of 8 vectors, 1 rank, 16384 floats", 1, 1 + of_reductions});
  }
  Truth slow = kTruth;
  slow.beta /= 0.6;
  std::vector<Observation> results;
  for (const double size : {1e5, 1e6, 1e7}) {
    Observation one = collective_observation(Collective::kAllReduce, "ring", 15, size);
    one.seconds = {predict_seconds(one, test::profile_of(slow, profile.topology))};
    results.push_back(one);
  }
  return diagnose(profile, results);
}

TEST_F(Diagnose, TakesTheToleranceFromCollectives) {
  const Diagnosis exact_network = with_errors(0, 2.8);
  EXPECT_TRUE(exact_network.is_judged);
  EXPECT_FALSE(exact_network.is_normal);
  EXPECT_EQ(exact_network.tolerance, 0.1);
  EXPECT_EQ(exact_network.culprit, "beta");
  EXPECT_NEAR(exact_network.factor, 1 / 0.6, 0.01);
  // |fitted / measured - 1|, as gar fit prints it: 20%, not 25%.
  EXPECT_NEAR(with_errors(-0.2, 0).tolerance, 0.2, 1e-9);
}

TEST_F(Diagnose, DoesNotJudgeByARoughProfile) {
  EXPECT_TRUE(with_errors(0.29, 0).is_judged);
  const Diagnosis d = with_errors(0.31, 0);
  EXPECT_FALSE(d.is_judged);
  EXPECT_FALSE(d.is_normal);
  EXPECT_EQ(d.culprit, "");
  ASSERT_EQ(d.words.size(), 2U);
  EXPECT_NE(d.words[0].find("too rough to judge"), std::string::npos);
  EXPECT_EQ(verdict_of(d, 0), Verdict::kUnknown);
}

// Errors of short vectors do not make a profile useless for long ones.
TEST_F(Diagnose, JudgesWhatTheProfileKnows) {
  Profile profile = test::profile_of(kTruth, make_tree({15}));
  std::vector<Observation> results;
  for (const double size : {1e2, 1e8, 1e9, 1e10}) {
    Observation one = collective_observation(Collective::kAllReduce, "ring", 15, size);
    const double expected = predict_seconds(one, profile);
    for (int i = 0; i < 6; ++i) profile.residuals.push_back({"cps", size < 1e3 ? 2 * expected : expected, expected});
    one.seconds = {2 * expected};
    results.push_back(one);
  }
  const Diagnosis d = diagnose(profile, results);
  EXPECT_TRUE(d.is_judged);
  EXPECT_FALSE(d.is_normal);
  EXPECT_EQ(verdict_of(d, 0), Verdict::kUnknown);
  EXPECT_NEAR(d.tolerances[0], 0.5, 1e-9);
  EXPECT_EQ(verdict_of(d, 3), Verdict::kSlow);
  EXPECT_EQ(d.tolerance, 0.1);
  EXPECT_NE(d.words[1].find("1 more are not judged"), std::string::npos) << d.words[1];
  EXPECT_NE(rough_words(profile).find("is rough for what takes less than"), std::string::npos) << rough_words(profile);
  for (Residual& residual : profile.residuals) residual.measured_s = residual.fitted_s;
  EXPECT_EQ(rough_words(profile), "");
}

TEST_F(Diagnose, SaysWhatIsLost) {
  Truth slow = kTruth;
  slow.beta *= 2;
  Diagnosis d = with(slow);
  std::vector<ResultRow> rows{{.bytes = 1e6, .seconds = 1, .resent = 0.004},
                              {.bytes = 1e3, .seconds = 1, .resent = 0.5}};
  add_loss({{.bytes = 1e6, .seconds = 1, .resent = 0}, {.bytes = 1e6, .seconds = 1}}, d);
  const std::size_t before = d.words.size();
  add_loss(rows, d);
  ASSERT_EQ(d.words.size(), before + 1);
  EXPECT_TRUE(d.words.back().starts_with("packets are lost: TCP sent 0.45% of its segments again")) << d.words.back();
  EXPECT_EQ(d.culprit, "beta") << "which explains it";
  d.culprit.clear();
  add_loss(rows, d);
  EXPECT_EQ(d.culprit, "lost packets");
  Diagnosis normal = with(kTruth);
  add_loss(rows, normal);
  EXPECT_EQ(normal.words.size(), 2U);
}

TEST_F(Diagnose, NeedsResults) {
  const Profile profile = test::profile_of(kTruth, make_tree({15}));
  EXPECT_THROW((void)diagnose(profile, {}), InvalidArgument);
}

}  // namespace
}  // namespace gar
