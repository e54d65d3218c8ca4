// Numbers, costs and profiles in words.
#include "gar/explain.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gar/explain_profile.hpp"

namespace gar {
namespace {

TEST(FormatSeconds, ChoosesTheUnit) {
  EXPECT_EQ(format_seconds(0), "0 s");
  EXPECT_EQ(format_seconds(1.2344), "1.234 s");
  EXPECT_EQ(format_seconds(12.3456), "12.35 s");
  EXPECT_EQ(format_seconds(0.0123), "12.30 ms");
  EXPECT_EQ(format_seconds(45.6e-6), "45.60 us");
  EXPECT_EQ(format_seconds(45.6e-6, 3), "45.6 us");
  EXPECT_EQ(format_seconds(7e-9), "7.000 ns");
  EXPECT_EQ(format_seconds(0.99999), "1.000 s");  // rounded before the unit is chosen
  EXPECT_EQ(format_seconds(1e-3), "1.000 ms");
  EXPECT_EQ(format_seconds(1e-6), "1.000 us");
  EXPECT_EQ(format_seconds(1e-9), "1.000 ns");
  EXPECT_EQ(format_seconds(123456), "123500 s");
  EXPECT_EQ(format_seconds(-0.5), "-500.0 ms");
  EXPECT_EQ(format_seconds(1e-300), "1e-291 ns");
}

TEST(FormatBytes, ChoosesTheUnit) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1000), "1 kB");
  EXPECT_EQ(format_bytes(4e8), "400 MB");
  EXPECT_EQ(format_bytes(1.5e9), "1.5 GB");
  EXPECT_EQ(format_bytes(999'999), "1 MB");
}

TEST(FormatCount, LooksAsTyped) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(10), "10");
  EXPECT_EQ(format_count(12'345), "12345");
  EXPECT_EQ(format_count(100'000'000), "1e8");
  EXPECT_EQ(format_count(32'000'000), "3.2e7");
  EXPECT_EQ(format_count(123'456'789), "123456789");
}

TEST(FormatGrouped, SeparatesThousands) {
  EXPECT_EQ(format_grouped(76'000'000), "76,000,000");
  EXPECT_EQ(format_grouped(999), "999");
}

TEST(FormatPercent, HasOneDecimal) { EXPECT_EQ(format_percent(0.1234), "12.3%"); }

//                    alpha  beta  gamma  delta  epsilon
constexpr Terms kBase{0.010, 1.00, 0.100, 0.050, 0.300};
constexpr Terms kOther{0.060, 1.00, 0.101, 0.050, 0.100};  // +50 ms, 0, +1 ms, 0, -200 ms

TEST(TermDifferences, LargestFirstAndNothingBelowTheShare) {
  const std::vector<TermDifference> all = term_differences(kBase, kOther, {.notable = 0});
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].term, CostTerm::kIncast);
  EXPECT_EQ(all[1].term, CostTerm::kLatency);
  EXPECT_EQ(all[2].term, CostTerm::kAdding);
  EXPECT_DOUBLE_EQ(all[1].seconds(), 0.05);
  EXPECT_EQ(term_differences(kBase, kOther).size(), 2U);                    // 1 ms is 0.5% of 200 ms
  EXPECT_EQ(term_differences(kBase, kOther, {.notable = 0.3}).size(), 1U);  // 50 ms is 25% of it
  EXPECT_EQ(term_differences(kBase, kOther, {.max_terms = 1}).size(), 1U);
  // 2% of the difference of the whole costs, 149 ms, is 2.98 ms; of the larger cost, 1.46 s, it is 29.2 ms.
  EXPECT_EQ(term_differences(kBase, kOther, {.share = NotableShare::kOfTotal}).size(), 2U);
  EXPECT_EQ(term_differences(kBase, kOther, {.share = NotableShare::kOfCost}).size(), 2U);
  EXPECT_EQ(term_differences(kBase, kOther, {.share = NotableShare::kOfCost, .notable = 0.1}).size(), 1U);
  EXPECT_TRUE(term_differences(kBase, kBase).empty());
}

TEST(TermDifferences, CalculationCanBeOneTerm) {
  const std::vector<TermDifference> joined = term_differences({}, {0, 0, 2, 3, 0}, {.joins_calculation = true});
  ASSERT_EQ(joined.size(), 1U);
  EXPECT_EQ(joined[0].term, CostTerm::kCalculation);
  EXPECT_DOUBLE_EQ(joined[0].after, 5);
}

TEST(DifferenceWords, KnowWhatMessagesCost) {
  const Terms many{.alpha = 0.010, .mu = 0.5};
  const Terms few{.alpha = 0.060, .mu = 0.1};
  EXPECT_EQ(difference_words(many, few), "400 ms less handling messages (mu), 50.0 ms more latency (alpha)");
  EXPECT_EQ(what_grew(few, many), "handling messages +400 ms (+400%), latency -50.0 ms (-83%)");
  EXPECT_EQ(why_simulated_differs(many, few, {.has_chunks = true}),
            "handling messages -400 ms (-80%): it overlaps with communication; latency +50.0 ms (+500%): steps of the "
            "chunks wait for each other");
}

TEST(DifferenceWords, ComeInThreeStyles) {
  EXPECT_EQ(difference_words(kBase, kOther), "200 ms less incast (epsilon), 50.0 ms more latency (alpha)");
  EXPECT_EQ(difference_words(kBase, kOther, {.style = DifferenceStyle::kSigned, .with_letters = false}),
            "-200 ms incast, +50.0 ms latency");
  EXPECT_EQ(difference_words(kBase, kOther, {.style = DifferenceStyle::kRelative, .with_letters = false}),
            "incast -200 ms (-67%), latency +50.0 ms (+500%)");
  EXPECT_EQ(difference_words(kBase, kBase), "no difference in any term");
  EXPECT_EQ(difference_words(kBase, kBase, {.style = DifferenceStyle::kSigned}), "the same");
  EXPECT_EQ(difference_words(kBase, kBase, {.style = DifferenceStyle::kRelative}), "no notable difference");
}

TEST(WhySimulatedDiffers, NamesTermsAndCauses) {
  const Terms predicted{0.1, 1.0, 0.05, 0.05, 0.3};
  Terms simulated = predicted;
  EXPECT_EQ(why_simulated_differs(predicted, simulated, {}), "as predicted");
  simulated.epsilon = 0.18;
  simulated.alpha = 0.088;
  EXPECT_EQ(why_simulated_differs(predicted, simulated, {}),
            "incast -120 ms (-40%): senders start and finish at different times, so fewer meet on a link");
  simulated.alpha = 0.05;
  EXPECT_EQ(why_simulated_differs(predicted, simulated, {}),
            "incast -120 ms (-40%): senders start and finish at different times, so fewer meet on a link; "
            "latency -50.0 ms (-50%): ranks wait for their own data, not for the longest path");
  simulated = predicted;
  simulated.beta = 1.5;
  EXPECT_EQ(why_simulated_differs(predicted, simulated, {.has_chunks = true}),
            "link time +500 ms (+50%): stages of different chunks share links");
  EXPECT_EQ(what_grew(predicted, simulated), "link time +500 ms (+50%)");
  EXPECT_EQ(what_grew(predicted, predicted), "no notable difference");
}

// Stages of CPS on four servers of one switch with an incast threshold of 2: in each half every link brings 3/4 of the
// vector from 3 senders, one more than the threshold. Per float beta 3/4 * 4, epsilon 3/4 * 1; alpha 3 * 1 per stage;
// fan-in 4: gamma 3/4 * 1.
TEST(StageWords, SayWhereTheTimeGoes) {
  const Topology star("star", {{"server", 1, {4, 1, 2}, {1, 0}, {}}, {"root", 1, {}, {}, {{0, 4}}}}, 1);
  const std::vector<StageCost> stages = PricedPlan(cps(4), star).critical_stages(4);
  ASSERT_EQ(stages.size(), 2U);
  EXPECT_EQ(stage_words(stages[0], 4, false),
            stages[0].label + " (ReduceScatter): 3.00 s of latency; the " + stages[0].link +
                " carries 75.0% of the vector from 3 senders in 15.0 s; more than the threshold of 2, so incast is "
                "20.0% of that; then reductions of 4 operands, 3.00 s");
  EXPECT_EQ(stage_words(stages[1], 4, false),
            stages[1].label + " (AllGather): 3.00 s of latency; the " + stages[1].link +
                " carries 75.0% of the vector from 3 senders in 15.0 s; more than the threshold of 2, so incast is "
                "20.0% of that");
  EXPECT_NE(stage_words(stages[1], 4, true).find("(explicit)"), std::string::npos);
  const Topology busy("busy", {{"server", 1, {4, 1, 2}, {1, 0, 2}, {}}, {"root", 1, {}, {}, {{0, 4}}}}, 1);
  EXPECT_EQ(stage_words(PricedPlan(cps(4), busy).critical_stages(4)[1], 4, false),
            stage_words(stages[1], 4, false) + "; handling the messages, 12.0 s");
}

TEST(StageWords, NameThePhase) {
  EXPECT_EQ(phase_word(false, false, false), "reduce-scatter");
  EXPECT_EQ(phase_word(false, false, true), "all-gather");
  EXPECT_EQ(phase_word(false, true, false), "exchange");
  EXPECT_EQ(phase_word(true, false, true), "step");
}

TEST(IncastWords, SayWhatWasFound) {
  LevelProfile level;
  level.beta.value = 1e-8;
  EXPECT_EQ(incast_words(level), "unknown: not measured");
  level.most_senders = 3;
  EXPECT_EQ(incast_words(level), "unknown: only up to 3 senders were measured");
  level.incast = Incast::kNone;
  EXPECT_EQ(incast_words(level), "none: up to 3 senders cost no more than one");
  level.incast = Incast::kDrift;
  level.epsilon.value = 2e-10;
  EXPECT_EQ(incast_words(level),
            "none; each further sender costs 2% of beta, as on networks without loss (up to 3 measured)");
  level.incast = Incast::kPresent;
  level.incast_threshold.value = 2;
  EXPECT_EQ(incast_words(level), "present: above 2 senders each further one costs 2% of beta (up to 3 measured)");
}

}  // namespace
}  // namespace gar
