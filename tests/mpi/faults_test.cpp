// Ranks that call something else, or nothing: an error on every rank. faults_test PATH [large]
// large: short vectors are left to the tests without it, but for GAR_TEST_FULL=1.
#include "mpi/mpi_test.hpp"

namespace {

using namespace gar;
using namespace gar::test;

/// What a rank calls.
struct Ask {
  std::int64_t count = 0;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  Collective collective = Collective::kAllReduce;
};

void call(Communicator& communicator, const Ask& r) {
  const auto elements = static_cast<std::size_t>(r.count) * static_cast<std::size_t>(communicator.size());
  std::vector<double> in(elements, 1);
  std::vector<double> out(elements, 0);
  communicator.run({r.collective, in.data(), out.data(), r.count, r.type, r.op});
}

/// The last rank asks for `odd`, the others for `usual`; a correct operation comes first.
void mismatch(MpiTest& test, MpiPath path, const Ask& usual, const Ask& odd, const std::string& algorithm = "") {
  CommunicatorOptions options;
  options.algorithm = algorithm;
  options.timeout_s = kNoLimit;  // what waits for it hangs, and is found out
  Communicator communicator = mpi_communicator(MPI_COMM_WORLD, options, path);
  run_case(communicator, {Collective::kAllReduce, Form::kInPlace, DataType::kInt32, ReduceOp::kSum, 1000}, 3);
  MpiTest::barrier();
  const bool is_odd = test.rank() == test.size() - 1;
  const std::string text = transport_error_of([&] { call(communicator, is_odd ? odd : usual); });
  test.expect(!text.empty(), "a mismatch must be an error on every rank");
  // And not that of the timeout.
  test.expect(text.find("called") != std::string::npos, "the error says which rank called what: " + text);
  const std::string again = transport_error_of([&] { call(communicator, usual); });
  test.expect(!again.empty(), "a communicator that has failed stays failed");
}

/// The last rank calls when the others have given up.
void hang(MpiTest& test, MpiPath path, std::int64_t count, const std::string& algorithm = "") {
  CommunicatorOptions options;
  options.algorithm = algorithm;
  options.timeout_s = 3;
  Communicator communicator = mpi_communicator(MPI_COMM_WORLD, options, path);
  run_case(communicator, {Collective::kAllReduce, Form::kInPlace, DataType::kInt32, ReduceOp::kSum, 1000}, 3);
  MpiTest::barrier();
  if (test.rank() == test.size() - 1) {
    MpiTest::barrier();
    // What has come before the others gave up may suffice for one more operation.
    std::string late;
    for (int i = 0; i < 2 && late.empty(); ++i) late = transport_error_of([&] { call(communicator, {count}); });
    test.expect(!late.empty(), "a rank that calls when the others have given up gets an error as well");
    return;
  }
  const std::string text = transport_error_of([&] { call(communicator, {count}); });
  MpiTest::barrier();
  test.expect(!text.empty(), "a silent rank must be an error");
  test.expect(text.find("rank") != std::string::npos, "the error names ranks: " + text);
}

}  // namespace

int main(int argc, char** argv) {
  MpiTest test(argc, argv);
  const std::string name = test.argument(0, "messages");
  const MpiPath path = parse_path(name);
  const Ask large{100'000};
  const auto with = [](Ask r, auto change) {
    change(r);
    return r;
  };
  test.part(name + ", counts", [&] { mismatch(test, path, large, {99'000}); });
  test.part(name + ", longer", [&] { mismatch(test, path, large, {400'000}); });
  test.part(name + ", small counts", [&] { mismatch(test, path, {10}, {11}); });
  test.part(name + ", small and large", [&] { mismatch(test, path, {10}, large); });
  test.part(name + ", large and small", [&] { mismatch(test, path, large, {10}); });
  test.part(name + ", types",
            [&] { mismatch(test, path, large, with(large, [](Ask& r) { r.type = DataType::kInt32; })); });
  test.part(name + ", operators",
            [&] { mismatch(test, path, large, with(large, [](Ask& r) { r.op = ReduceOp::kMax; })); });
  test.part(name + ", small operators",
            [&] { mismatch(test, path, {10}, with(Ask{10}, [](Ask& r) { r.op = ReduceOp::kMax; })); });
  test.part(name + ", collectives", [&] {
    mismatch(test, path, large, with(large, [](Ask& r) { r.collective = Collective::kReduceScatter; }));
  });
  // Messages so short that they carry the signature: nobody announces anything.
  for (const std::string algorithm : {"ring", "recursive-doubling", "cps"}) {
    test.part(name + ", frames, counts, " + algorithm, [&] { mismatch(test, path, {900}, {901}, algorithm); });
    test.part(name + ", frames, operators, " + algorithm,
              [&] { mismatch(test, path, {900}, with(Ask{900}, [](Ask& r) { r.op = ReduceOp::kMax; }), algorithm); });
    test.part(name + ", frames and long messages, " + algorithm,
              [&] { mismatch(test, path, {900}, large, algorithm); });
  }
  test.part(name + ", frames, collectives", [&] {
    mismatch(test, path, {900}, with(Ask{900}, [](Ask& r) { r.collective = Collective::kReduceScatter; }), "ring");
  });
  test.part(name + ", silent rank, frames", [&] { hang(test, path, 900, "ring"); });
  test.part(name + ", silent rank", [&] { hang(test, path, 100'000); });
  const bool has_small = test.argument(1, "") != "large" || scale() == Scale::kFull;
  if (has_small) test.part(name + ", silent rank, small", [&] { hang(test, path, 10); });
  return test.finish();
}
