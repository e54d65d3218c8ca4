#include "runtime/transports/cuda/device_transport.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <thread>

#include "gar/errors.hpp"
#include "runtime/transports/cuda/cuda_call.hpp"

namespace gar {

namespace {

constexpr int kEagerLooks = 300;  // before a waiting thread sleeps between two looks
constexpr auto kNap = std::chrono::microseconds(20);
constexpr auto kCheckInterval = std::chrono::milliseconds(20);
constexpr auto kReleaseTime = std::chrono::seconds(2);

bool is_ready(cudaError_t state, const char* what) {
  if (state == cudaErrorNotReady) return false;
  if (state == cudaSuccess) return true;
  // Nothing works any more on a device that a kernel has failed on.
  throw TransportError(fmt::format("{}: {}", what, to_text(state)));
}

void check_operands(const Schedule& schedule, const ChunkProgram& program) {
  for (const ChunkStep& step : program.steps) {
    for (const Reduction& reduction : step.reductions) {
      const std::size_t operands = reduction.operands.size() + (reduction.has_own ? 1 : 0);
      if (operands <= kMaxDeviceOperands) continue;
      throw PlanError(fmt::format("the plan '{}' reduces {} operands at once; expected at most {} on a GPU",
                                  schedule.plan->plan.algorithm, operands, kMaxDeviceOperands));
    }
  }
}

/// Puts the caller's device back. Captures of other threads do not forbid what a call does.
struct DeviceScope {
  explicit DeviceScope(int before) : device(before) {}
  ~DeviceScope() { static_cast<void>(cudaSetDevice(device)); }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;
  int device;
  RelaxedCapture relaxed;
};

}  // namespace

DeviceTransport::DeviceTransport(std::unique_ptr<SharedTransport> control, int rank, int size)
    : control_(std::move(control)), rank_(rank), size_(size) {
  check_cuda(cudaGetDevice(&device_), "cudaGetDevice");
  // CUDA loads a kernel with its first launch and may wait for the whole GPU then, also for streams that wait for
  // peers.
  load_kernels();
  compute_.set_rank(rank);
  // Not a stream of the non-blocking kind: it comes after what the default stream has.
  check_cuda(cudaStreamCreate(&own_), "cudaStreamCreate");
  check_cuda(cudaEventCreateWithFlags(&last_, cudaEventDisableTiming), "cudaEventCreate");
}

DeviceTransport::~DeviceTransport() {
  if (last_ != nullptr) static_cast<void>(cudaEventDestroy(last_));
  if (own_ != nullptr) static_cast<void>(cudaStreamDestroy(own_));
}

std::shared_ptr<void> DeviceTransport::enter() {
  is_intact_ = false;
  int before = 0;
  check_cuda(cudaGetDevice(&before), "cudaGetDevice");
  const auto scope = std::make_shared<DeviceScope>(before);
  if (before != device_) check_cuda(cudaSetDevice(device_), "cudaSetDevice");
  return scope;
}

TransportLimits DeviceTransport::limits() const {
  // One stream does one thing after the other: nothing overlaps, and one chunk has the fewest launches.
  return {.num_slots = 1, .least_chunk_bytes = std::numeric_limits<std::int64_t>::max(), .needs_sources = true};
}

void DeviceTransport::check_buffer(const void* pointer, const char* name) const {
  cudaPointerAttributes attributes{};
  check_cuda(cudaPointerGetAttributes(&attributes, pointer), "cudaPointerGetAttributes");
  if (attributes.type == cudaMemoryTypeDevice && attributes.device == device_) return;
  std::string what = "host memory";
  if (attributes.type == cudaMemoryTypeManaged) what = "managed memory (cudaMallocManaged)";
  if (attributes.type == cudaMemoryTypeHost) what = "pinned host memory";
  if (attributes.type == cudaMemoryTypeDevice) what = fmt::format("memory of device {}", attributes.device);
  throw InvalidArgument(
      fmt::format("`{}` is {}; expected memory of device {}, which this communicator works on (for "
                  "host memory: shared_memory_communicator, mpi_communicator)",
                  name, what, device_));
}

void DeviceTransport::check_buffers(const Operands& operands) const {
  check_buffer(operands.in, "in");
  if (operands.out != operands.in) check_buffer(operands.out, "out");
  const std::int64_t alignment = operands.schedule == nullptr ? 1 : operands.schedule->element_size;
  for (const void* pointer : {operands.in, static_cast<const void*>(operands.out)}) {
    if (reinterpret_cast<std::uintptr_t>(pointer) % static_cast<std::uintptr_t>(alignment) != 0) {
      throw InvalidArgument(
          fmt::format("`{}` is at {}; expected on a GPU a multiple of the "
                      "element's {} bytes",
                      pointer == operands.in ? "in" : "out", pointer, alignment));
    }
  }
}

void DeviceTransport::choose_stream(const Operands& operands) {
  is_blocking_ = !operands.stream;
  const auto chosen = operands.stream ? static_cast<CudaStream>(operands.stream->handle) : own_;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(chosen, &status), "cudaStreamIsCapturing");
  is_capturing_ = status != cudaStreamCaptureStatusNone;
  // Operations of a communicator follow each other, whatever streams they are in.
  if (has_last_ && !is_capturing_) {
    check_cuda(cudaStreamWaitEvent(chosen, last_, 0), "cudaStreamWaitEvent");
  }
  compute_.set_stream(chosen);
}

void DeviceTransport::begin(const Signature& signature, const Operands& operands) {
  is_intact_ = false;
  if (has_failed_ && control_ == nullptr) throw TransportError("this communicator has failed before");
  if (control_ != nullptr) control_->begin(signature, {});
  has_met_ = false;
  has_recorded_ = false;
  has_elements_ = operands.in_bytes > 0;
  is_entering_ = true;
  has_user_stream_ = false;
  is_gpu_awaited_ = false;
  num_looks_ = 0;
  notice_ = {};
  problem_ = nullptr;
  try {
    choose_stream(operands);
    if (has_elements_) {
      check_buffers(operands);
      if (is_capturing_) compute_.keep_scratch();
      if (operands.schedule != nullptr) {
        check_operands(*operands.schedule, operands.schedule->full);
        check_operands(*operands.schedule, operands.schedule->last);
        compute_.reserve_scratch(scratch_bytes(*operands.schedule, limits()));
      }
      prepare(operands, notice_.words);
    }
  } catch (const std::exception& e) {
    problem_ = std::current_exception();
    notice_.is_refused = 1;
    const std::string text(e.what());
    std::memcpy(notice_.reason.data(), text.data(), std::min(text.size(), notice_.reason.size() - 1));
  }
}

void DeviceTransport::refuse(std::span<const Notice* const> notices) {
  is_intact_ = true;
  is_entering_ = false;
  if (problem_) std::rethrow_exception(problem_);
  for (std::size_t rank = 0; rank < notices.size(); ++rank) {
    if (notices[rank]->is_refused != 0) {
      throw DeviceError(fmt::format("rank {} cannot take part: {}", rank, notices[rank]->reason.data()));
    }
  }
  throw DeviceError("a rank cannot take part");
}

bool DeviceTransport::try_meet() {
  if (has_met_) return true;
  std::vector<const Notice*> notices;
  if (control_ == nullptr) {
    if (problem_) refuse({});
  } else {
    std::vector<const std::byte*> theirs(static_cast<std::size_t>(size_));
    if (!control_->try_exchange(&notice_, sizeof notice_, theirs)) return false;
    control_->progressed();
    for (const std::byte* words : theirs) notices.push_back(reinterpret_cast<const Notice*>(words));
    if (std::any_of(notices.begin(), notices.end(), [](const Notice* n) { return n->is_refused != 0; })) {
      refuse(notices);
    }
  }
  if (has_elements_) {
    agree(notices);
  } else if (control_ == nullptr) {
    meet_on_device();
  }
  has_met_ = true;
  return true;
}

bool DeviceTransport::try_open(Flight& /*flight*/) { return try_meet(); }

bool DeviceTransport::try_complete() {
  is_gpu_awaited_ = true;
  if (!has_recorded_) {
    has_recorded_ = true;
    is_entering_ = false;
    // An event that is recorded during a capture would be of no use outside.
    if (is_capturing_) return true;
    check_cuda(cudaEventRecord(last_, stream()), "cudaEventRecord");
    has_last_ = true;
  }
  return !is_blocking_ || is_ready(cudaEventQuery(last_), "an operation on the GPU");
}

bool DeviceTransport::is_idle(Stream stream) {
  is_gpu_awaited_ = true;
  auto* const handle = static_cast<CudaStream>(stream.handle);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t error = cudaStreamIsCapturing(handle, &status);
  // Other errors are those of the GPU.
  is_intact_ = error == cudaErrorInvalidResourceHandle || error == cudaErrorStreamCaptureImplicit ||
               status != cudaStreamCaptureStatusNone;
  if (is_intact_) {
    static_cast<void>(cudaGetLastError());
    throw InvalidArgument(fmt::format("synchronize: the stream {}; expected a stream of device {}",
                                      error == cudaSuccess ? "is being captured" : to_text(error), device_));
  }
  user_stream_ = handle;
  has_user_stream_ = !is_ready(cudaStreamQuery(handle), "the stream");
  return !has_user_stream_;
}

void DeviceTransport::look_after_peers() {
  // All ranks have begun. What the user has put into streams before may take as long as it likes.
  if (control_ != nullptr) control_->check_peers(false);
  check_device();
}

void DeviceTransport::wait() {
  if (!is_gpu_awaited_ && control_ != nullptr) {
    control_->wait();
    return;
  }
  if (num_looks_ == 0) next_check_ = std::chrono::steady_clock::now() + kCheckInterval;
  if (++num_looks_ <= kEagerLooks) {
    std::this_thread::yield();
    return;
  }
  std::this_thread::sleep_for(kNap);
  if (std::chrono::steady_clock::now() < next_check_) return;
  next_check_ = std::chrono::steady_clock::now() + kCheckInterval;
  look_after_peers();
}

void DeviceTransport::progressed() {
  if (control_ != nullptr) control_->progressed();
}

void DeviceTransport::fail(std::string_view reason) noexcept {
  if (control_ != nullptr) control_->fail(reason);
  has_failed_ = true;
  const std::shared_ptr<void> scope = enter_for_good();
  // Streams that go on empty boxes and wait again, as often as they have steps: so again and again.
  const auto end = std::chrono::steady_clock::now() + kReleaseTime;
  while (std::chrono::steady_clock::now() < end) {
    release();
    if (are_streams_idle()) break;
  }
  has_user_stream_ = false;
}

bool DeviceTransport::are_streams_idle() const {
  // A stream of the user's exists for sure only during a call.
  if (is_entering_ && !is_capturing_ && cudaStreamQuery(stream()) == cudaErrorNotReady) return false;
  if (has_user_stream_ && cudaStreamQuery(user_stream_) == cudaErrorNotReady) return false;
  return !has_last_ || cudaEventQuery(last_) != cudaErrorNotReady;
}

void DeviceTransport::wait_for_last() {
  while (has_last_ && !is_ready(cudaEventQuery(last_), "an operation on the GPU")) {
    std::this_thread::sleep_for(kNap);
    look_after_peers();
  }
}

std::shared_ptr<void> DeviceTransport::enter_for_good() noexcept {
  try {
    return enter();
  } catch (...) {  // NOLINT(bugprone-empty-catch): no device, nothing to do on it
  }
  return nullptr;
}

void DeviceTransport::finish() noexcept {
  try {
    wait_for_last();
  } catch (const std::exception& e) {
    fail(e.what());
  } catch (...) {
    fail("an unknown error");
  }
}

}  // namespace gar
