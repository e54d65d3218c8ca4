// The parts of `gar bench` that need no other process: flags, sizes, columns, data, and how ranks are started.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "apps/gar/verbs/bench_options.hpp"
#include "apps/gar/views/bench_report.hpp"
#include "gar/errors.hpp"
#include "gar/measure/launch.hpp"
#include "gar/stats.hpp"
#include "measure/bench/buffers.hpp"
#include "measure/bench/data.hpp"

namespace gar::cli {
namespace {

BenchArgs args_with(std::string BenchArgs::*field, const std::string& text) {
  BenchArgs args;
  args.*field = text;
  return args;
}
BenchArgs args_with_network(const NetworkArgs& network) {
  BenchArgs args;
  args.network = network;
  return args;
}

std::string usage_error(const BenchArgs& args) {
  try {
    (void)parse_bench(args);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

std::vector<std::string> names(const std::vector<BenchEntry>& entries) {
  std::vector<std::string> out;
  for (const BenchEntry& entry : entries) out.push_back(describe(entry));
  return out;
}

TEST(BenchOptions, Defaults) {
  const BenchConfig config = parse_bench({});
  EXPECT_EQ(config.sizes,
            (std::vector<std::int64_t>{4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}));
  EXPECT_EQ(config.iterations, 20);
  EXPECT_EQ(config.warmup, 5);
  EXPECT_TRUE(config.check);
  EXPECT_EQ(config.cases, (std::vector<BenchCase>{{DataType::kFloat32, ReduceOp::kSum}}));
  EXPECT_EQ(names(config.entries), std::vector<std::string>{"auto"});
  EXPECT_EQ(config.transport, TransportKind::kAuto);
  EXPECT_FALSE(config.local);
  EXPECT_FALSE(config.has_native());
}

TEST(BenchOptions, OneEndOfTheSweepIsEnough) {
  EXPECT_EQ(parse_bench(args_with(&BenchArgs::begin, "1GiB")).sizes, std::vector<std::int64_t>{1 << 30});
  EXPECT_EQ(parse_bench(args_with(&BenchArgs::end, "8")).sizes, std::vector<std::int64_t>{8});
}

TEST(BenchOptions, SizesGrowByAFactorOrAnIncrement) {
  EXPECT_EQ(bench_sizes(3, 20, 2, 0), (std::vector<std::int64_t>{3, 6, 12}));
  EXPECT_EQ(bench_sizes(3, 24, 2, 0), (std::vector<std::int64_t>{3, 6, 12, 24}));
  EXPECT_EQ(bench_sizes(0, 8, 1, 4), (std::vector<std::int64_t>{0, 4, 8}));
  EXPECT_EQ(bench_sizes(0, 0, 2, 0), std::vector<std::int64_t>{0});
  // No overflow at the end of the range.
  EXPECT_EQ(bench_sizes(kMaxVectorBytes / 2, kMaxVectorBytes, 1000, 0).size(), 1U);
  EXPECT_EQ(bench_sizes(kMaxVectorBytes - 1, kMaxVectorBytes, 1, 7).size(), 1U);
  EXPECT_THROW((void)bench_sizes(0, 1'000'000, 1, 1), UsageError);
}

// gar bench -b 8 -e 128M -f 2 -g 8
TEST(BenchOptions, TheFirstCommandOfNcclTests) {
  BenchArgs args;
  args.begin = "8";
  args.end = "128M";
  args.factor = "2";
  args.gpus = "8";
  const BenchConfig config = parse_bench(args);
  EXPECT_EQ(config.local, 8);
  EXPECT_EQ(config.sizes.size(), 25U);
  EXPECT_EQ(config.sizes.back(), 128 << 20);
  args.local = "4";
  EXPECT_NE(usage_error(args).find("only one of -g and --local"), std::string::npos);
}

TEST(BenchOptions, SizesAndCounts) {
  using Sizes = std::vector<std::int64_t>;
  EXPECT_EQ(parse_bench(args_with(&BenchArgs::sizes, "1kB..20kB,8")).sizes, (Sizes{1000, 4000, 16000, 8}));
  BenchArgs args = args_with(&BenchArgs::counts, "1K,2K");
  EXPECT_EQ(parse_bench(args).sizes, (Sizes{4096, 8192}));
  args.dtype = "double,int64";
  EXPECT_EQ(parse_bench(args).sizes, (Sizes{8192, 16384}));
  args.dtype = "double,half";
  EXPECT_NE(usage_error(args).find("types of one size"), std::string::npos);
  args.dtype = "all";
  EXPECT_NE(usage_error(args).find("--count cannot be combined with -d all"), std::string::npos);
  args.dtype = "half";
  args.begin = "8";
  EXPECT_NE(usage_error(args).find("only one of --size, --count and a range"), std::string::npos);
}

TEST(BenchOptions, RejectsWhatMakesNoSense) {
  const auto contains = [](const BenchArgs& args, const std::string& part) {
    const std::string message = usage_error(args);
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  BenchArgs range;
  range.begin = "1MiB";
  range.end = "1KiB";
  contains(range, "-b 1MiB is more than -e 1KiB");
  BenchArgs both;
  both.factor = "2";
  both.increment = "4";
  contains(both, "only one of -f and -i");
  contains(args_with(&BenchArgs::begin, "x"), "-b 'x': not a number");
  contains(args_with(&BenchArgs::begin, "0"), "cannot grow by a factor");
  contains(args_with(&BenchArgs::factor, "1"), "-f '1': out of range; expected a whole number from 2");
  contains(args_with(&BenchArgs::increment, "0"), "at least 1 byte");
  contains(args_with(&BenchArgs::iterations, "0"), "-n '0': expected a whole number from 1");
  contains(args_with(&BenchArgs::warmup, "-1"), "-w '-1': expected a whole number from 0");
  contains(args_with(&BenchArgs::batch, "0"), "--batch '0'");
  contains(args_with(&BenchArgs::local, "0"), "--local '0': expected a whole number from 1 to 1,024");
  contains(args_with(&BenchArgs::local, "4x"), "--local '4x'");
  contains(args_with(&BenchArgs::timeout, "0"), "--timeout '0'");
  contains(args_with(&BenchArgs::dtype, "float33"), "-d 'float33': unknown type; expected int8");
  contains(args_with(&BenchArgs::op, "avg"), "or all");
  contains(args_with(&BenchArgs::op, "band"), "-o band cannot be combined with -d float32");
  contains(args_with(&BenchArgs::collective, "broadcast"), "expected allreduce reduce-scatter allgather");
  contains(args_with(&BenchArgs::algo, "rign"), "gar bench also has auto and native");
  BenchArgs threads = args_with(&BenchArgs::algo, "auto,native");
  threads.transport = "threads";
  contains(threads, "--transport threads cannot be combined with native");
}

TEST(BenchOptions, ListsOfTypesOperatorsAndAlgorithms) {
  BenchArgs args;
  args.dtype = "int8,float64,int8";
  args.op = "max,sum";
  EXPECT_EQ(parse_bench(args).cases, (std::vector<BenchCase>{{DataType::kInt8, ReduceOp::kMax},
                                                             {DataType::kInt8, ReduceOp::kSum},
                                                             {DataType::kFloat64, ReduceOp::kMax},
                                                             {DataType::kFloat64, ReduceOp::kSum}}));
  args.dtype = args.op = "all";
  EXPECT_EQ(parse_bench(args).cases.size(), 8U * 10U + 4U * 4U);  // floats have no bitwise and logical operators
  args.collective = "all_gather";
  EXPECT_EQ(parse_bench(args).cases.size(), 12U);  // nothing is combined
  args.algo = "auto,ring,native,ring,hcps:2x2";
  EXPECT_EQ(names(parse_bench(args).entries), (std::vector<std::string>{"auto", "ring", "native", "hcps:2x2"}));
  EXPECT_TRUE(parse_bench(args).has_native());
  args.algo = "cps,native";
  args.reproducible = true;
  EXPECT_EQ(names(parse_bench(args).entries), (std::vector<std::string>{"cps", "cps, reproducible", "native"}));
}

TEST(BenchOptions, ChecksAgainstTheNumberOfRanks) {
  BenchConfig config = parse_bench(args_with(&BenchArgs::algo, "hcps:2x3"));
  EXPECT_NO_THROW(check_ranks(config, 6));
  EXPECT_THROW(check_ranks(config, 5), InvalidArgument);
  config = parse_bench(args_with_network({"star:4", ""}));
  EXPECT_NO_THROW(check_ranks(config, 4));
  EXPECT_THROW(check_ranks(config, 3), InvalidArgument);
}

TEST(BenchOptions, AProfileIsANetwork) {
  const std::string june = GAR_SOURCE_DIR "/data/profiles/june.json";
  BenchConfig config = parse_bench(args_with_network({"", june}));
  ASSERT_TRUE(config.topology && config.profile);
  EXPECT_EQ(config.topology->num_servers(), 12);
  EXPECT_EQ(correction_of(*config.profile, 4096)->factor.value, 1.25);
  EXPECT_EQ(correction_of(*config.profile, 1 << 20), nullptr);
  // Laid over another network.
  config = parse_bench(args_with_network({"star:4", june}));
  EXPECT_EQ(config.topology->num_servers(), 4);
  EXPECT_EQ(config.topology->path_latency(0, 1), 6e-5);
  EXPECT_THROW((void)parse_bench(args_with_network({"", "nothing.json"})), ParseError);
}

TEST(BenchOptions, SizesInElements) {
  EXPECT_EQ(bench_size(1030, DataType::kFloat32, Collective::kAllReduce, 3), (BenchSize{257, 257, 1028}));
  EXPECT_EQ(bench_size(1030, DataType::kFloat32, Collective::kReduceScatter, 3), (BenchSize{85, 255, 1020}));
  EXPECT_EQ(bench_size(8, DataType::kFloat64, Collective::kAllGather, 2), (BenchSize{0, 0, 0}));
}

TEST(BenchOptions, SmallVectorsRunInBatches) {
  BenchConfig config;
  EXPECT_EQ(batch_of(config, 0), 32);
  EXPECT_EQ(batch_of(config, 4096), 32);
  EXPECT_EQ(batch_of(config, 65536), 4);
  EXPECT_EQ(batch_of(config, 262144), 1);
  EXPECT_EQ(batch_of(config, 1 << 30), 1);
  config.batch = 7;
  EXPECT_EQ(batch_of(config, 1 << 30), 7);
}

TEST(BenchStats, Quantiles) {
  const Spread s = spread_of({5, 1, 4, 2, 3});
  EXPECT_DOUBLE_EQ(s.median, 3);
  EXPECT_DOUBLE_EQ(s.min, 1);
  EXPECT_DOUBLE_EQ(s.max, 5);
  EXPECT_DOUBLE_EQ(s.p10, 1.4);  // place 0.4 between the first and the second
  EXPECT_DOUBLE_EQ(s.p90, 4.6);
  EXPECT_DOUBLE_EQ(spread_of({1, 2}).median, 1.5);
  EXPECT_DOUBLE_EQ(spread_of({7}).p90, 7);
}

TEST(BenchStats, Bandwidths) {
  // 1 GB in 0.5 s between 4 ranks: 2 GB/s; AllReduce carries 2 * 3/4 of it on a link, its halves 3/4.
  EXPECT_DOUBLE_EQ(algorithm_bandwidth(1e9, 0.5), 2e9);
  EXPECT_DOUBLE_EQ(algorithm_bandwidth(0, 0), 0);
  EXPECT_DOUBLE_EQ(bus_bandwidth(Collective::kAllReduce, 4, 2e9), 3e9);
  EXPECT_DOUBLE_EQ(bus_bandwidth(Collective::kReduceScatter, 4, 2e9), 1.5e9);
  EXPECT_DOUBLE_EQ(bus_bandwidth(Collective::kAllGather, 4, 2e9), 1.5e9);
  EXPECT_DOUBLE_EQ(bus_bandwidth(Collective::kAllReduce, 1, 2e9), 0);
  EXPECT_DOUBLE_EQ(prediction_error(1.5, 1), 0.5);
  EXPECT_DOUBLE_EQ(geometric_mean({2, 8}), 4);
  EXPECT_DOUBLE_EQ(geometric_mean({}), 1);
}

/// Whole numbers up to here are exact.
int exact_to(DataType type) {
  return type == DataType::kInt8 ? 127 : type == DataType::kUint8 ? 255 : type == DataType::kBfloat16 ? 256 : 2048;
}

// Combining with the library itself, in two different orders, must give what the data say.
void expect_exact(const BenchData::Setup& setup, std::int64_t first, std::int64_t count) {
  SCOPED_TRACE(::testing::Message() << to_string(setup.type) << " " << to_string(setup.op) << " " << setup.num_ranks);
  const BenchData data(setup);
  const auto bytes = static_cast<std::size_t>(count * size_of(setup.type));
  std::vector<std::vector<std::byte>> inputs(static_cast<std::size_t>(setup.num_ranks), std::vector<std::byte>(bytes));
  std::vector<const void*> operands;
  for (int r = 0; r < setup.num_ranks; ++r) {
    std::vector<std::byte>& input = inputs[static_cast<std::size_t>(r)];
    data.fill(r, first, input.data(), count);
    EXPECT_EQ(data.num_wrong_of_input(r, first, input.data(), count), 0);
    operands.push_back(input.data());
  }
  std::vector<std::byte> out(bytes);
  reduce(setup.type, setup.op, out.data(), operands, count);
  EXPECT_EQ(data.num_wrong_of_result(first, out.data(), count), 0);
  // Two at a time, from the last rank on: 16-bit floats are rounded after every step.
  out = inputs.back();
  for (int r = setup.num_ranks - 2; r >= 0; --r) {
    const void* pair[] = {operands[static_cast<std::size_t>(r)], out.data()};
    reduce(setup.type, setup.op, out.data(), pair, count);
  }
  EXPECT_EQ(data.num_wrong_of_result(first, out.data(), count), 0);
}

TEST(BenchData, ResultsAreExactInEveryOrder) {
  for (int t = 0; t < kNumDataTypes; ++t) {
    for (int o = 0; o < kNumReduceOps; ++o) {
      const auto type = static_cast<DataType>(t);
      const auto op = static_cast<ReduceOp>(o);
      if (!is_supported(type, op)) continue;
      for (const int ranks : {1, 2, 3, 16}) expect_exact({type, op, ranks, 5}, 4000, 9000);  // more than two periods
      // More ranks than the type has exact whole numbers.
      if (exact_to(type) <= 256) expect_exact({type, op, 300, 5}, 4000, 700);
    }
  }
}

// A check that cannot fail would be none: results of different elements must differ, and so must inputs.
TEST(BenchData, ResultsAreMixed) {
  for (const DataType type : {DataType::kInt8, DataType::kUint64, DataType::kBfloat16, DataType::kFloat32}) {
    for (int o = 0; o < kNumReduceOps; ++o) {
      const auto op = static_cast<ReduceOp>(o);
      if (!is_supported(type, op)) continue;
      const BenchData data({type, op, 8, 1});
      const auto size = static_cast<std::size_t>(size_of(type));
      std::vector<std::byte> input(BenchData::kPeriod * size);
      data.fill(3, 0, input.data(), BenchData::kPeriod);
      // Taking an input for the result is noticed, and so is the result of another place.
      const std::int64_t wrong = data.num_wrong_of_result(0, input.data(), BenchData::kPeriod);
      EXPECT_GT(wrong, BenchData::kPeriod / 20) << to_string(type) << " " << to_string(op);
      data.fill(3, BenchData::kPeriod, input.data(), BenchData::kPeriod);
      EXPECT_GT(data.num_wrong_of_input(3, 0, input.data(), BenchData::kPeriod), BenchData::kPeriod / 20)
          << to_string(type) << " " << to_string(op);
    }
  }
}

TEST(BenchData, CountsEveryWrongElement) {
  const BenchData data({DataType::kFloat32, ReduceOp::kSum, 4, 9});
  std::vector<float> values(10'000);
  auto* bytes = reinterpret_cast<std::byte*>(values.data());
  data.fill(1, 123, bytes, 10'000);
  values[0] += 1;
  values[4098] += 1;
  values[9999] += 1;
  EXPECT_EQ(data.num_wrong_of_input(1, 123, bytes, 10'000), 3);
  EXPECT_EQ(data.num_wrong_of_input(1, 123 + 1, bytes + 4, 9'999), 2);
}

BenchBuffers::Shape shape_of(Collective collective, bool in_place) {
  BenchBuffers::Shape shape;
  shape.collective = collective;
  shape.type = DataType::kInt32;
  shape.size = collective == Collective::kAllReduce ? BenchSize{6, 6, 24} : BenchSize{2, 6, 24};
  shape.rank = 1;
  shape.num_ranks = 3;
  shape.in_place = in_place;
  shape.batch = 2;
  return shape;
}

TEST(BenchBuffers, PlacesInputAndResult) {
  BenchBuffers buffers(24, 48);
  const auto distance = [](const CollectiveCall& a) {
    return static_cast<const std::byte*>(a.out) - static_cast<const std::byte*>(a.in);
  };
  buffers.set_shape(shape_of(Collective::kAllReduce, true));
  EXPECT_EQ(buffers.call(1, false).in, buffers.call(1, false).out);
  EXPECT_EQ(static_cast<std::byte*>(buffers.call(1, false).out) - static_cast<std::byte*>(buffers.call(0, false).out),
            24);
  buffers.set_shape(shape_of(Collective::kReduceScatter, true));
  EXPECT_EQ(distance(buffers.call(0, false)), 8);  // block 1
  EXPECT_EQ(distance(buffers.call(0, true)), 0);
  buffers.set_shape(shape_of(Collective::kAllGather, true));
  EXPECT_EQ(distance(buffers.call(0, false)), -8);
  buffers.set_shape(shape_of(Collective::kAllReduce, false));
  EXPECT_NE(buffers.call(0, false).in, buffers.call(0, false).out);
  EXPECT_EQ(buffers.call(0, false).out, buffers.call(1, false).out);
}

TEST(BenchBuffers, NoticesWrongResultsInputsAndEnds) {
  const BenchData data({DataType::kInt32, ReduceOp::kSum, 3, 1});
  BenchBuffers buffers(24, 48);
  buffers.set_shape(shape_of(Collective::kAllReduce, false));
  buffers.fill(data);
  EXPECT_EQ(buffers.num_wrong(data, false), 6);  // garbage where the result goes
  const CollectiveCall call = buffers.call(0, false);
  std::vector<std::int32_t> sum(6, 0);
  std::vector<std::int32_t> one(6);
  for (int r = 0; r < 3; ++r) {
    data.fill(r, 0, reinterpret_cast<std::byte*>(one.data()), 6);
    for (std::size_t i = 0; i < 6; ++i) sum[i] += one[i];
  }
  std::memcpy(call.out, sum.data(), 24);
  EXPECT_EQ(buffers.num_wrong(data, false), 0);
  static_cast<std::byte*>(call.out)[24] = std::byte{1};  // beyond the end
  EXPECT_EQ(buffers.num_wrong(data, false), 1);
  static_cast<std::int32_t*>(const_cast<void*>(call.in))[2] += 1;
  EXPECT_EQ(buffers.num_wrong(data, false), 2);
}

using Json = nlohmann::ordered_json;

BenchResult result_of(const std::string& name, std::int64_t bytes, double seconds) {
  BenchResult r;
  r.entry.name = name;
  r.entry.is_native = name == "native";
  r.size = {bytes / 4, bytes / 4, bytes};
  r.seconds = {seconds, seconds, seconds, seconds, seconds};
  return r;
}

TEST(BenchReport, RatiosCompareEqualSizes) {
  const std::vector<BenchResult> results{result_of("auto", 4096, 1), result_of("native", 4096, 2),
                                         result_of("auto", 65536, 1), result_of("native", 65536, 8),
                                         result_of("auto", 1 << 20, 1)};
  const std::vector<BenchRatio> ratios = bench_ratios(results);
  ASSERT_EQ(ratios.size(), 1U);
  EXPECT_DOUBLE_EQ(ratios[0].mean, 4);
  EXPECT_EQ(ratio_words(ratios[0]),
            "auto is 4.00 times as fast as native (geometric mean; 2.00 at 4 KiB to 8.00 at 64 KiB)");
}

TEST(BenchReport, LinesHaveTheColumnsOfTheHeader) {
  BenchResult r = result_of("ring", 4096, 12.5e-6);
  r.wrong = 0;
  r.algbw = 0.32768e9;
  r.busbw = 1.5 * r.algbw;
  r.predicted_seconds = 10e-6;
  r.num_chunks = 3;
  const std::string line = bench_line(r, false);
  std::istringstream words(line);
  const std::vector<std::string> values(std::istream_iterator<std::string>(words), {});
  EXPECT_EQ(values, (std::vector<std::string>{"4096", "1024", "float32", "sum", "-1", "12.50", "0.328", "0.492", "0",
                                              "10.00", "+25%", "12.50..12.50", "ring,", "3", "chunks"}));
  // Every title ends where its column ends.
  const std::string header = bench_header({}, "2 processes of this host");
  const std::string titles = header.substr(header.find("#        size"));
  EXPECT_TRUE(header.find("\n#        size") != std::string::npos) << header;
  const auto end = [](const std::string& text, const std::string& word) { return text.find(word) + word.size(); };
  const std::vector<std::pair<std::string, std::string>> columns{
      {"size", " 4096"}, {"count", " 1024"},     {"type", "float32"}, {"redop", " sum"},
      {"root", " -1"},   {"time", " 12.50"},     {"algbw", "0.328"},  {"busbw", "0.492"},
      {"#wrong", " 0 "}, {"predicted", "10.00"}, {"error", "+25%"},   {"p10..p90", "12.50..12.50"}};
  for (const auto& [title, value] : columns) {
    const std::size_t blank = value.ends_with(' ') ? 1 : 0;
    EXPECT_EQ(end(titles, title), end(line, value) - blank) << title << "\n" << titles << line;
  }
  EXPECT_EQ(titles.find("algorithm"), line.find("ring"));
  EXPECT_EQ(format_binary_bytes(1000), "1000 B");
  EXPECT_EQ(format_binary_bytes(1536), "1.5 KiB");
}

// The columns of nccl-tests, and the rest in a second table of comments; diagnose reads what is printed.
TEST(BenchReport, NarrowTablesFitAndAreReadBack) {
  BenchConfig config;
  config.sizes = {4096, 128 << 20};
  config.cases = {{DataType::kFloat32, ReduceOp::kSum}, {DataType::kBfloat16, ReduceOp::kBxor}};
  BenchLayout layout = bench_layout(config);
  layout.is_wide = false;  // whatever the terminal
  std::vector<BenchResult> results{result_of("auto", 128 << 20, 1.25), result_of("native", 128 << 20, 2.5),
                                   result_of("ring", 4096, 12.5e-6)};
  results[0].plan = "hcps:8x3";
  results[0].num_chunks = 128;
  results[0].predicted_seconds = 1;
  results[1].plan = "Open MPI 4.1.4";
  results[2].entry.is_reproducible = true;
  results.push_back(result_of("auto", 64 << 20, 1));
  results[3].plan = "recursive-multiplying:4x4";
  for (BenchResult& r : results) r.wrong = 0;
  std::string text = bench_header(config, "24 processes of 24 hosts, over mpi, with a name that is long", "", layout);
  for (const BenchResult& r : results) text += bench_line(r, false, layout);
  text += bench_footer(results, {}, layout);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  EXPECT_NE(text.find("# 134217728  1250000..1250000    1000000   +25%  auto: hcps:8x3, 128 chunks\n"),
            std::string::npos)
      << text;
  const Results back = parse_results(text, "out.txt");
  EXPECT_EQ(back.num_ranks, 24);
  ASSERT_EQ(back.rows.size(), 3U) << "not the reproducible mode";
  EXPECT_EQ(back.rows[2].algorithm, "recursive-multiplying:4x4") << "there is no room for it";
  EXPECT_EQ(back.rows[2].label, "auto: recursive-multiplying:4x4");
  EXPECT_DOUBLE_EQ(back.rows[2].seconds, 1);
  EXPECT_EQ(back.rows[0].algorithm, "hcps:8x3");
  EXPECT_DOUBLE_EQ(back.rows[0].seconds, 1.25);
  EXPECT_EQ(back.rows[1].label, "native");
}

TEST(BenchReport, DocumentHasThePromisedFields) {
  BenchRecord record;
  record.num_ranks = 4;
  record.results = {result_of("auto", 4096, 1e-5)};
  const Json document = Json::parse(bench_document({}, record));
  EXPECT_EQ(document["schema"], "gar.bench/2");
  const Json& r = document["results"][0];
  for (const char* field :
       {"algorithm", "transport", "ranks", "bytes", "seconds", "algbw", "busbw", "wrong", "predicted_seconds", "median",
        "min", "max", "p10", "p90", "iterations", "chunks", "reason", "resent"}) {
    EXPECT_TRUE(r.contains(field)) << field;
  }
  EXPECT_TRUE(r["wrong"].is_null());  // not checked
  EXPECT_TRUE(r["predicted_seconds"].is_null());
  EXPECT_FALSE(r.contains("correction"));
}

TEST(BenchReport, CorrectionsAreShown) {
  BenchResult small = result_of("cps", 4096, 1e-5);
  small.predicted_seconds = 1.25e-5;
  small.correction = 1.25;
  BenchResult large = result_of("cps", 1 << 20, 1e-3);
  large.predicted_seconds = 1e-3;
  EXPECT_EQ(bench_footer({large}, {}), "");
  EXPECT_EQ(
      bench_footer({small, large}, {}),
      "# predictions are the model's times the profile's correction for the size: 1.25 from 4 KiB, 1 from 1 MiB\n");
  BenchRecord record;
  record.results = {small};
  EXPECT_EQ(Json::parse(bench_document({}, record))["results"][0]["correction"], 1.25);
}

TEST(Launch, ReadsTheEnvironmentOfMpirun) {
  const auto job = [](std::map<std::string, std::string> variables) {
    return mpi_job([variables = std::move(variables)](const char* name) -> const char* {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    });
  };
  EXPECT_FALSE(job({}));
  EXPECT_FALSE(job({{"OMPI_COMM_WORLD_RANK", "x"}, {"OMPI_COMM_WORLD_SIZE", "4"}}));
  const auto open_mpi = job({{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}});
  ASSERT_TRUE(open_mpi);
  EXPECT_EQ(open_mpi->library, MpiLibrary::kOpenMpi);
  EXPECT_EQ(open_mpi->rank, 3);
  EXPECT_EQ(open_mpi->size, 4);
  const auto slurm = job({{"PMIX_RANK", "2"}, {"SLURM_NTASKS", "3"}});
  ASSERT_TRUE(slurm);
  EXPECT_EQ(slurm->library, MpiLibrary::kOpenMpi);
  EXPECT_EQ(slurm->rank, 2);
  const auto mpich = job({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}});
  ASSERT_TRUE(mpich);
  EXPECT_EQ(mpich->library, MpiLibrary::kMpich);
}

TEST(Launch, LaunchersAreToldByTheirNames) {
  for (const char* word : {"mpirun", "/opt/mpi/bin/mpirun.openmpi", "./mpiexec.hydra", "mpiexec", "orterun", "prun",
                           "hydra", "mpirun-openmpi-gcc", "prterun"}) {
    EXPECT_EQ(launcher_kind(word), LauncherKind::kMpi) << word;
  }
  for (const char* word : {"srun", "/usr/bin/srun", "aprun", "jsrun", "flux"}) {
    EXPECT_EQ(launcher_kind(word), LauncherKind::kScheduler) << word;
  }
  for (const char* word :
       {"", "./program", "mpirun/program", "mpirunner", "mpirun_rsh", "python3", "env", "a.mpirun"}) {
    EXPECT_EQ(launcher_kind(word), LauncherKind::kNone) << word;
  }
  EXPECT_NE(launcher_names().find("mpirun mpiexec "), std::string::npos);
}

TEST(Launch, RunsACommandToItsEnd) {
  const auto report = [](std::string_view text) { ADD_FAILURE() << text; };
  EXPECT_EQ(run_and_wait({"/bin/sh", "-c", "exit 7"}, report), 7);
  EXPECT_EQ(run_and_wait({"/bin/sh", "-c", "kill -9 $$"}, report), 128 + 9);
}

TEST(Launch, CommandsOfMpirun) {
  const auto has = [](const MpiCommand& command, const std::string& setting) {
    for (const auto& [name, value] : command.settings) {
      if (name == setting) return true;
    }
    return false;
  };
  const MpiCommand crowded = mpi_command(MpiLibrary::kOpenMpi, "mpirun", 4, {2, true});
  EXPECT_EQ(crowded.words.back(), "4");
  EXPECT_TRUE(has(crowded, "OMPI_MCA_mpi_yield_when_idle"));
  EXPECT_TRUE(has(crowded, "OMPI_ALLOW_RUN_AS_ROOT"));
  const MpiCommand roomy = mpi_command(MpiLibrary::kOpenMpi, "mpirun", 2, {2, false});
  EXPECT_FALSE(has(roomy, "OMPI_MCA_mpi_yield_when_idle"));
  EXPECT_FALSE(has(roomy, "OMPI_ALLOW_RUN_AS_ROOT"));
  EXPECT_EQ(mpi_command(MpiLibrary::kMpich, "mpirun.mpich", 3, {2, true}).words.front(), "mpirun.mpich");
}

TEST(Launch, RanksEndWithTheirCode) {
  std::set<std::string> lines;
  const LocalProcesses three{3, 5, [&](std::string_view line) { lines.emplace(line); }};
  EXPECT_EQ(run_local_processes(three, [](const LocalRank& rank) { return rank.rank == 2 ? 1 : 0; }), 1);
  EXPECT_TRUE(lines.empty());
  EXPECT_EQ(run_local_processes(three,
                                [](const LocalRank& rank) -> int {
                                  if (rank.rank == 1) throw InvalidArgument("own");
                                  throw TransportError("common");
                                }),
            4);
  EXPECT_EQ(lines, (std::set<std::string>{"rank 1: own", "ranks 0, 2: common"}));
}

TEST(Launch, ReportsKilledRanksAndEndsTheOthers) {
  std::vector<std::string> lines;
  const LocalProcesses three{3, 0.3, [&](std::string_view line) { lines.emplace_back(line); }};
  const int code = run_local_processes(three, [](const LocalRank& rank) {
    if (rank.rank == 1) std::raise(SIGKILL);
    if (rank.rank == 2) pause();  // never ends by itself
    return 0;
  });
  EXPECT_EQ(code, 4);
  EXPECT_EQ(lines, (std::vector<std::string>{"rank 1: killed by signal 9 (Killed)",
                                             "rank 2: did not end within 0.3 s after the first failure"}));
}

TEST(Launch, NamesDiffer) {
  std::set<std::string> seen;
  for (int i = 0; i < 3; ++i) {
    // The name comes back through a pipe.
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    EXPECT_EQ(run_local_processes({2, 5, {}},
                                  [&](const LocalRank& rank) {
                                    const std::string line = rank.name + "\n";
                                    return write(ends[1], line.data(), line.size()) > 0 ? 0 : 4;
                                  }),
              0);
    close(ends[1]);
    char text[512] = {};
    const ssize_t length = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    ASSERT_GT(length, 0);
    const std::string both(text, static_cast<std::size_t>(length));
    const std::string first = both.substr(0, both.find('\n'));
    EXPECT_EQ(both, first + "\n" + first + "\n");
    seen.insert(first);
  }
  EXPECT_EQ(seen.size(), 3U);
}

}  // namespace
}  // namespace gar::cli
