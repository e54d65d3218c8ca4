// Who wins, by what factor and why; and where the choice changes.
#include <gtest/gtest.h>

#include "gar/explain.hpp"

namespace gar {
namespace {

TEST(WinnerWords, SayFactorAndTerms) {
  const Contestant ring{"ring", {.alpha = 3, .beta = 1}};
  const Contestant cps{"cps", {.alpha = 1, .beta = 1}};
  EXPECT_EQ(winner_words(cps, ring), "cps is 2.00x as fast as ring: 2.00 s less latency");
  EXPECT_EQ(winner_words(cps, ring, true), "cps is 2.00x as fast as ring: 2.00 s less latency (alpha)");
}

TEST(WinnerWords, LargeFactorsHaveNoDecimals) {
  const Contestant one{"cps", {.alpha = 1}};
  EXPECT_EQ(winner_words(one, {"ring", {.alpha = 99.24}}), "cps is 99.24x as fast as ring: 98.2 s less latency");
  EXPECT_EQ(winner_words(one, {"ring", {.alpha = 164.17}}), "cps is 164x as fast as ring: 163 s less latency");
}

TEST(WinnerWords, ChunksOverlapAndSaveNothing) {
  const Contestant whole{"gentree", {.beta = 3}};
  const Contestant chunks{"gentree+", {.beta = 2}, 98};
  EXPECT_EQ(winner_words(chunks, whole),
            "gentree+ is 1.50x as fast as gentree: 1.00 s less link time on the critical path, where its 98 chunks "
            "overlap");
}

TEST(WinnerWords, RivalsMayHaveChunksToo) {
  const Contestant whole{"cps", {.beta = 2}};
  const Contestant chunks{"ring", {.beta = 3}, 20};
  EXPECT_EQ(winner_words(whole, chunks),
            "cps is 1.50x as fast as ring: 1.00 s less link time on the critical path, where the 20 chunks of ring "
            "overlap");
  EXPECT_EQ(winner_words({"cps", {.beta = 2}, 31}, chunks),
            "cps is 1.50x as fast as ring: 1.00 s less link time on the critical path (31 and 20 chunks, which "
            "overlap)");
}

TEST(WinnerWords, SmallAndNoDifferences) {
  const Contestant a{"a", {.alpha = 1.00, .beta = 1.00}};
  const Contestant b{"b", {.alpha = 0.52, .beta = 1.50}};
  EXPECT_EQ(winner_words(a, b), "a is 1.0% faster than b: 500 ms less link time, 480 ms more latency");
  EXPECT_EQ(winner_words(a, a), "a and a take the same time");
  EXPECT_EQ(winner_words(a, {"c", {.alpha = 1.0001, .beta = 1.00}}), "a and c take nearly the same time");
}

// Chunks are counted to a thousandth, so what is that close is no rival; and rows count in chunks where that is faster.
TEST(Rival, IsTheNextThatTakesNotablyLonger) {
  const auto row = [](const char* name, double whole, double chunked) {
    PredictRow out;
    out.spec.name = name;
    out.terms = out.whole = {.beta = whole};
    out.chunked = {.beta = chunked};
    out.num_chunks = 7;
    return out;
  };
  const std::vector<PredictRow> rows{row("a", 3, 1), row("b", 1.001, 2), row("c", 9, 1.003), row("d", 1.5, 2)};
  ASSERT_NE(rival_of(rows), nullptr);
  EXPECT_EQ(rival_of(rows)->algorithm(), "c");
  EXPECT_EQ(contestant_of(rows[0]).terms.total(), 1);
  EXPECT_EQ(contestant_of(rows[0]).num_chunks, 7);
  EXPECT_EQ(contestant_of(rows[1]).num_chunks, 1);
  EXPECT_EQ(rival_of(std::vector<PredictRow>{rows[0], rows[1]}), nullptr);
  EXPECT_EQ(rival_of({}), nullptr);
}

TEST(SizeWords, SayBothSidesInBytes) {
  Flips flips;
  flips.searched_from = 1;
  flips.searched_to = 1e9;
  EXPECT_EQ(size_words(flips, "cps"), "cps at every size from 4 B to 4 GB");
  flips.above = Flip{1e6, "ring"};
  EXPECT_EQ(size_words(flips, "cps"), "cps up to 4 MB, ring above");
  flips.below = Flip{1e3, "rhd"};
  EXPECT_EQ(size_words(flips, "cps"), "rhd up to 4 kB, cps up to 4 MB, ring above");
  flips.above.reset();
  EXPECT_EQ(size_words(flips, "cps"), "rhd up to 4 kB, cps above");
}

TEST(RankWords, NamePowersOfTwo) {
  PredictAnswer answer;
  Flips flips;
  flips.searched_from = 3;
  flips.searched_to = 40;
  flips.around = "hcps";
  answer.rank_flips = flips;
  const Topology network = make_tree({12});
  EXPECT_EQ(rank_words(network, answer), "hcps for 3 to 40 servers");
  answer.rank_flips->exceptions = {{16, "rhd"}};
  EXPECT_EQ(rank_words(network, answer), "hcps for 3 to 40 servers; but rhd at 16 servers (a power of two)");
  answer.rank_flips->exceptions = {{4, "ring"}, {16, "rhd"}, {32, "rhd"}};
  answer.rank_flips->below = Flip{8, "cps"};
  answer.rank_flips->above = Flip{31, "ring"};
  EXPECT_EQ(
      rank_words(network, answer),
      "cps up to 8 servers, hcps up to 30 servers, ring above; but ring at 4; rhd at 16, 32 servers (powers of two)");
}

}  // namespace
}  // namespace gar
