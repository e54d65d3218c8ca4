// The flags of `gar bench`.
#include "apps/gar/verbs/bench_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "apps/gar/cli/algorithms.hpp"
#include "apps/gar/cli/plan_args.hpp"
#include "apps/gar/views/page.hpp"
#include "gar/errors.hpp"
#include "gar/planner.hpp"

namespace gar::cli {
namespace {

constexpr std::int64_t kDefaultBegin = std::int64_t{4} << 10;
constexpr std::int64_t kDefaultEnd = std::int64_t{64} << 20;
constexpr std::int64_t kMaxIterations = 1'000'000;
constexpr std::int64_t kMaxLocal = 1024;

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> out;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

struct Range {
  std::int64_t least;
  std::int64_t most;
};

std::int64_t parse_whole(std::string_view flag, const std::string& text, Range range) {
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < range.least || value > range.most) {
    throw UsageError(fmt::format("{} '{}': expected a whole number from {} to {}", flag, text, range.least,
                                 format_grouped(range.most)));
  }
  return value;
}

// Elements as bytes, which is the same for all types only if they are equally large.
std::vector<std::int64_t> sizes_of_counts(const BenchArgs& args, std::int64_t factor) {
  const std::vector<std::string> names = split(args.dtype);
  std::vector<std::int64_t> out;
  for (const std::string& name : names) {
    std::vector<std::int64_t> sizes;
    for (const std::int64_t count : parse_count_list("--count", args.counts, factor)) {
      if (name == "all")
        throw UsageError("--count cannot be combined with -d all, whose elements differ in size; --size does");
      sizes.push_back(vector_size_of_count("--count", fmt::to_string(count), parse_dtype("-d", name)).bytes);
    }
    if (!out.empty() && out != sizes) {
      throw UsageError("--count goes with types of one size; --size goes with all of them");
    }
    out = std::move(sizes);
  }
  return out;
}

std::vector<std::int64_t> parse_sizes(const BenchArgs& args) {
  if (!args.factor.empty() && !args.increment.empty()) {
    throw UsageError("only one of -f and -i is needed: sizes grow by a factor or by an increment");
  }
  if (!args.sizes.empty() || !args.counts.empty()) {
    if (!(args.begin + args.end + args.increment).empty() || (!args.sizes.empty() && !args.counts.empty())) {
      throw UsageError("only one of --size, --count and a range (-b, -e, -i) is needed");
    }
    const std::int64_t factor = size_factor(args.factor);
    return args.counts.empty() ? parse_bytes_list("--size", args.sizes, factor) : sizes_of_counts(args, factor);
  }
  std::int64_t begin = kDefaultBegin;
  std::int64_t end = kDefaultEnd;
  if (!args.begin.empty()) begin = parse_bytes("-b", args.begin);
  if (!args.end.empty()) end = parse_bytes("-e", args.end);
  if (args.begin.empty()) begin = std::min(begin, end);
  if (args.end.empty()) end = std::max(begin, end);
  if (begin > end) {
    throw UsageError(fmt::format("-b {} is more than -e {}; expected a first size that is not above the last one",
                                 args.begin, args.end));
  }
  if (!args.increment.empty()) {
    const std::int64_t increment = parse_bytes("-i", args.increment);
    if (increment < 1) throw UsageError(fmt::format("-i '{}': expected a size of at least 1 byte", args.increment));
    return bench_sizes(begin, end, 1, increment);
  }
  const std::int64_t factor = size_factor(args.factor);
  if (begin == 0 && end > 0) throw UsageError("-b 0: a size of 0 cannot grow by a factor; accepted with -i or -e 0");
  return bench_sizes(begin, end, factor, 0);
}

std::vector<DataType> parse_types(const std::string& text) {
  std::vector<DataType> out;
  for (const std::string& name : split(text)) {
    if (name == "all") {
      for (int t = 0; t < kNumDataTypes; ++t) out.push_back(static_cast<DataType>(t));
      continue;
    }
    try {
      out.push_back(parse_dtype("-d", name));
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("{} or all", error.what()));
    }
  }
  return out;
}

// Nothing stands for all operators that a type has.
std::vector<std::optional<ReduceOp>> parse_ops(const std::string& text) {
  std::vector<std::optional<ReduceOp>> out;
  for (const std::string& name : split(text)) {
    if (name == "all") {
      out.emplace_back(std::nullopt);
      continue;
    }
    try {
      out.emplace_back(parse_reduce_op(name));
    } catch (const InvalidArgument& error) {
      throw UsageError(fmt::format("-o: {}, or all", error.what()));
    }
  }
  return out;
}

void check_on_cuda(DataType type, ReduceOp op) {
  if (is_reduced_on_cuda(type, op)) return;
  throw UsageError(
      fmt::format("-d {} -o {} cannot be combined with --device cuda; expected sum prod min max of int8 uint8 int32 "
                  "uint32 int64 uint64 float16 bfloat16 float32 float64, or all for these",
                  to_string(type), to_string(op)));
}

// What is asked for by name must exist; `all` means what does.
std::vector<BenchCase> parse_cases(const BenchArgs& args, Collective collective, Device device) {
  std::vector<BenchCase> out;
  const auto is_there = [&](DataType type, ReduceOp op) {
    return is_supported(type, op) && (device == Device::kCpu || is_reduced_on_cuda(type, op));
  };
  const auto add = [&](BenchCase c) {
    if (std::find(out.begin(), out.end(), c) == out.end()) out.push_back(c);
  };
  const std::vector<std::optional<ReduceOp>> ops = parse_ops(args.op);
  for (const DataType type : parse_types(args.dtype)) {
    if (collective == Collective::kAllGather) {
      add({type, ReduceOp::kSum});
      continue;
    }
    for (const std::optional<ReduceOp>& op : ops) {
      if (op && !is_supported(type, *op)) {
        throw UsageError(
            fmt::format("-o {} cannot be combined with -d {}: bitwise and logical operators are for integers",
                        to_string(*op), to_string(type)));
      }
      const bool is_named = op && args.dtype != "all";
      if (is_named && device == Device::kCuda) check_on_cuda(type, *op);
      for (int o = 0; o < kNumReduceOps; ++o) {
        const auto candidate = static_cast<ReduceOp>(o);
        if ((!op || *op == candidate) && is_there(type, candidate)) add({type, candidate});
      }
    }
    const bool has_any =
        std::any_of(out.begin(), out.end(), [type](const BenchCase& known) { return known.type == type; });
    if (!has_any && args.dtype != "all") check_on_cuda(type, ReduceOp::kSum);
  }
  return out;
}

Collective collective_option(const std::string& text) {
  if (const auto collective = parse_collective(text)) return *collective;
  std::string accepted;
  for (const Collective collective : kCollectives) accepted += fmt::format(" {}", to_string(collective));
  throw UsageError(fmt::format("--collective '{}': expected{}", text, accepted));
}

std::vector<BenchEntry> parse_entries(const BenchArgs& args) {
  std::vector<BenchEntry> out;
  const auto add = [&](const BenchEntry& entry) {
    if (std::find(out.begin(), out.end(), entry) == out.end()) out.push_back(entry);
    if (!args.reproducible || entry.is_native) return;
    BenchEntry slower = entry;
    slower.is_reproducible = true;
    if (std::find(out.begin(), out.end(), slower) == out.end()) out.push_back(slower);
  };
  BenchEntry plan;
  plan.name = "plan";
  plan.is_plan = true;
  if (!args.plan.empty()) add(plan);
  if (args.algo.empty() && !args.plan.empty()) return out;
  for (const std::string& name : split(args.algo.empty() ? "auto" : args.algo)) {
    BenchEntry entry;
    entry.name = name;
    entry.is_native = name == "native";
    if (name == "auto" || entry.is_native) {
      add(entry);
      continue;
    }
    try {
      for (const AlgorithmSpec& spec : parse_algorithms(name)) {
        entry.name = entry.algorithm = to_string(spec);
        add(entry);
      }
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("{}; gar bench also has auto and native", error.what()));
    }
  }
  return out;
}

void check_device_usage(const BenchConfig& config) {
  if (!config.local) {
    throw UsageError("--device cuda needs --local N (and no mpirun): processes of this host, which share its GPUs");
  }
  if (config.reproducible) {
    throw UsageError("--reproducible cannot be combined with --device cuda: that mode is for host memory");
  }
  if (config.mpi) throw UsageError("--mpi cannot be combined with --device cuda, where native is NCCL's own");
}

void check_usage(const BenchConfig& config) {
  if (config.device == Device::kCuda) check_device_usage(config);
  const bool is_threads = config.transport == TransportKind::kThreads;
  if (is_threads && config.has_native()) {
    throw UsageError("--transport threads cannot be combined with native: the MPI library runs between processes");
  }
  if (is_tcp(config.transport) && config.has_native()) {
    throw UsageError(
        fmt::format("--transport {} cannot be combined with native: there is no MPI", to_string(config.transport)));
  }
  if (config.plan && config.plan->collective != Collective::kAllReduce) {
    throw PlanError(
        fmt::format("--plan: the plan is one for {}; expected one for allreduce, whose halves run for "
                    "the other collectives",
                    to_string(config.plan->collective)));
  }
}

}  // namespace

void add_bench_options(CLI::App& verb, BenchArgs& args) {
  verb.add_option("--local", args.local, "Start this many processes on this host (default: one per core, at least 2)")
      ->type_name("N");
  verb.add_option("-g,--gpus", args.gpus, "As --local, on the GPUs of this host where there are any (as in nccl-tests)")
      ->type_name("N");
  verb.add_option("-b,--begin", args.begin, "First size (default 4KiB)")->type_name("SIZE");
  verb.add_option("-e,--end", args.end, "Last size (default 64MiB)")->type_name("SIZE");
  verb.add_option("-f,--factor", args.factor, "Factor between sizes (default 4)")->type_name("F");
  verb.add_option("-i,--increment", args.increment, "Increment between sizes, instead of a factor")->type_name("SIZE");
  verb.add_option("--size,--sizes", args.sizes, "These sizes instead: 1MB, 1kB,1MB or 1kB..1GB")->type_name("SIZE");
  verb.add_option("--count", args.counts, "The same in elements: 1e6, 1e3,1e6 or 1e3..1e9")->type_name("N");
  verb.add_option("-n,--iterations", args.iterations, "Timed iterations of each size and algorithm")
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("-w,--warmup", args.warmup, "Untimed iterations before those")->type_name("N")->capture_default_str();
  verb.add_option("-c,--check", args.check, "1: check every element of the results")
      ->type_name("C")
      ->check(CLI::IsMember({"0", "1"}))
      ->capture_default_str();
  verb.add_option("--batch", args.batch, "Operations back to back in one iteration; auto: 32 or fewer, 1 from 256 KiB")
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("-d,--dtype", args.dtype, "Types of the elements, or all; also half float double")
      ->type_name("TYPE[,TYPE...]")
      ->capture_default_str();
  verb.add_option("-o,--op", args.op, "Operators: sum prod min max band bor bxor land lor lxor, or all")
      ->type_name("OP[,OP...]")
      ->capture_default_str();
  verb.add_option("--collective", args.collective, "What runs: allreduce, reduce-scatter or allgather")
      ->type_name("C")
      ->capture_default_str();
  verb.add_flag("--in-place", args.in_place, "The result replaces the input");
  add_device_option(
      verb, args.device,
      "Where the vectors are; cuda: on this host's GPUs, which the ranks of --local share; operations of a batch then "
      "follow each other in a stream, and only the end of the batch is waited for");
  verb.add_option("--transport", args.transport,
                  "What connects the ranks; auto: shared memory, MPI between hosts; tcp and shm+tcp: without MPI; "
                  "cuda-ipc (auto "
                  "there) and nccl with --device cuda")
      ->type_name("T")
      ->check(CLI::IsMember({"auto", "threads", "shm", "mpi", "tcp", "shm+tcp", "cuda-ipc", "nccl"}))
      ->capture_default_str();
  verb.add_option("--algo", args.algo,
                  "Algorithms, measured in turns; auto (default): what the communicator chooses; native: the MPI "
                  "library's own, or NCCL's")
      ->type_name("A[,A...]");
  verb.add_option("--plan", args.plan, "Measure this plan, as written by gar plan")->type_name("plan.json");
  verb.add_option("-t,--topology", args.network.topology,
                  "The network with its parameters (default: measured at the start)")
      ->type_name("T");
  add_profile_option(verb, args.network.profile);
  verb.add_flag("--reproducible", args.reproducible,
                "Also measure the mode that gives the same bits for any number of ranks, and print its cost");
  verb.add_option("--timeout", args.timeout, "Seconds after which a silent rank is an error (default 30)")
      ->type_name("S");
  verb.add_option("--mpi", args.mpi, "Which MPI --local starts when native or --transport mpi needs one")
      ->type_name("M")
      ->check(CLI::IsMember({"openmpi", "mpich"}));
  verb.add_option("-J,--json-file", args.json_file, "Also write the JSON document to this file")->type_name("FILE");
  add_html_option(verb, args.html);
}

TransportKind parse_transport(const std::string& text, Device device) {
  const TransportKind out = parse_transport_kind(text).value_or(TransportKind::kAuto);  // the flag has checked it
  if (device == Device::kCuda) {
    if (out == TransportKind::kAuto) return TransportKind::kCudaIpc;
    if (!is_for_gpus(out)) {
      throw UsageError(
          fmt::format("--transport {} cannot be combined with --device cuda; expected auto cuda-ipc nccl", text));
    }
  } else if (is_for_gpus(out)) {
    throw UsageError(fmt::format(
        "--transport {} is for --device cuda; without that expected auto shm mpi tcp shm+tcp, and threads in gar "
        "bench",
        text));
  }
  return out;
}

BenchConfig parse_bench(const BenchArgs& args) {
  BenchConfig out;
  out.sizes = parse_sizes(args);
  out.iterations = parse_whole("-n", args.iterations, {1, kMaxIterations});
  out.warmup = parse_whole("-w", args.warmup, {0, kMaxIterations});
  out.batch = args.batch == "auto" ? 0 : parse_whole("--batch", args.batch, {1, kMaxIterations});
  out.check = args.check == "1";
  out.in_place = args.in_place;
  out.reproducible = args.reproducible;
  out.collective = collective_option(args.collective);
  // Under an mpirun of the user's -g 1 says what is so anyway: one rank in every process.
  const bool is_in_job = current_mpi_job() && !is_started_by_us();
  const bool is_one_each = is_in_job && args.gpus == "1";
  if (is_in_job && !args.gpus.empty() && !is_one_each) {
    throw UsageError(fmt::format("-g '{}' under mpirun: expected -g 1, one rank in each of its processes", args.gpus));
  }
  const bool wants_gpus = !args.gpus.empty() && !is_one_each;
  out.device = wants_gpus && can_use_cuda() ? Device::kCuda : parse_device(args.device);
  out.cases = parse_cases(args, out.collective, out.device);
  out.transport = parse_transport(args.transport, out.device);
  out.entries = parse_entries(args);
  if (!args.timeout.empty()) out.timeout_s = parse_timeout(args.timeout);
  if (wants_gpus) {
    if (!args.local.empty()) throw UsageError("only one of -g and --local is needed: both say how many processes");
    out.local = static_cast<int>(parse_whole("-g", args.gpus, {1, kMaxLocal}));
  }
  if (!args.local.empty()) out.local = static_cast<int>(parse_whole("--local", args.local, {1, kMaxLocal}));
  if (!args.mpi.empty()) out.mpi = args.mpi == "mpich" ? MpiLibrary::kMpich : MpiLibrary::kOpenMpi;
  if (!args.plan.empty()) out.plan = load_plan(args.plan);
  if (!args.network.empty()) {
    // All ranks of an MPI job read the same command line; one note about it is enough.
    const std::optional<MpiJob> job = current_mpi_job();
    Network network = load_network(args.network, job && job->rank != 0 ? Notes::kOmit : Notes::kPrint);
    out.topology = std::move(network.topology);
    out.profile = std::move(network.profile);
  }
  if (args.json_file == "-") throw UsageError("-J '-': expected a file; for standard output there is --json");
  if (!args.html.empty() && out.collective != Collective::kAllReduce) {
    throw UsageError("--html goes with allreduce, and not with the other collectives");
  }
  out.json_file = args.json_file;
  check_usage(out);
  return out;
}

void check_ranks(const BenchConfig& config, int num_ranks) {
  if (config.plan && config.plan->num_ranks != num_ranks) {
    throw PlanError(
        fmt::format("--plan: the plan is for {} ranks, but {} take part", config.plan->num_ranks, num_ranks));
  }
  if (config.topology && config.topology->num_servers() != num_ranks) {
    throw InvalidArgument(fmt::format(
        "{} {}: the network has {} servers, but {} ranks take part; expected one "
        "server per rank, such as star:{}",
        config.profile ? "-p" : "-t", config.topology->name(), config.topology->num_servers(), num_ranks, num_ranks));
  }
  for (const BenchEntry& entry : config.entries) {
    if (!entry.algorithm.empty()) check_algorithm(parse_algorithm(entry.algorithm), num_ranks);
  }
}

std::vector<std::int64_t> bench_sizes(std::int64_t begin, std::int64_t end, std::int64_t factor,
                                      std::int64_t increment) {
  std::vector<std::int64_t> out;
  for (std::int64_t size = begin;;) {
    if (static_cast<std::int64_t>(out.size()) == kMaxSizes) {
      throw UsageError(
          fmt::format("more than {} sizes from -b to -e; expected a larger -i, or -f", format_grouped(kMaxSizes)));
    }
    out.push_back(size);
    if (increment > 0 ? size > end - increment : size == 0 || size > end / factor) return out;
    size = increment > 0 ? size + increment : size * factor;
  }
}

}  // namespace gar::cli
