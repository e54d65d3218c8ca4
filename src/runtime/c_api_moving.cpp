// The movements of gar/gar.h. What they accept is checked by the engine; here only what C alone can get wrong.
#include <cstddef>
#include <memory>
#include <string>

#include "runtime/c_api.hpp"

namespace gar::c_api {

namespace {

/// A movement as C programs call it.
struct Moved {
  Movement movement;
  const void* in;
  void* out;
  std::int64_t count;
  gar_type type;
  gar_op op = GAR_SUM;
  int root = 0;
};

MovementCall checked_movement(const Moved& given, const Communicator& communicator, const char* function) {
  MovementCall call;
  call.movement = given.movement;
  call.in = given.in;
  call.out = given.out;
  call.count = given.count;
  call.type = checked_type(given.type, function);
  call.op = checked_op(given.op, function);
  call.root = given.root;
  require(given.count >= 0, function,
          "the count is " + std::to_string(given.count) + "; expected a number of elements from 0");
  require(given.out != GAR_IN_PLACE, function, "`out` is GAR_IN_PLACE; accepted only as `in`");
  if (given.in != GAR_IN_PLACE) return call;
  const bool gathers = given.movement == Movement::kGather;
  require((gathers || given.movement == Movement::kReduce) && communicator.rank() == given.root, function,
          "`in` is GAR_IN_PLACE; accepted on the root of gar_reduce_to and gar_gather");
  call.in = given.out;
  if (gathers && given.out != nullptr) call.in = block_in(given.out, given.count, call.type, communicator.rank());
  return call;
}

gar_status move(gar_comm* comm, const Moved& given, const char* name) noexcept {
  return guarded(name, [&](const char* function) {
    Communicator& communicator = communicator_of(comm, function);
    communicator.move(checked_movement(given, communicator, function));
  });
}

gar_status start_move(gar_comm* comm, const Moved& given, gar_request** request, const char* name) noexcept {
  return guarded(name, [&](const char* function) {
    require(request != nullptr, function, "`request` is NULL; expected where the request shall be written");
    auto result = std::make_unique<gar_request>();
    Communicator& communicator = communicator_of(comm, function);
    result->request = communicator.start_move(checked_movement(given, communicator, function));
    *request = result.release();
  });
}

/// Who sends is the root.
int own_rank(const gar_comm* comm) { return gar_comm_rank(comm); }
int other_rank(const gar_comm* comm) { return 1 - gar_comm_rank(comm); }

}  // namespace

}  // namespace gar::c_api

using gar::Movement;
using gar::c_api::move;
using gar::c_api::start_move;

gar_status gar_broadcast(gar_comm* comm, void* data, int64_t count, gar_type type, int root) {
  return move(comm, {Movement::kBroadcast, data, data, count, type, GAR_SUM, root}, __func__);
}

gar_status gar_reduce_to(gar_comm* comm, const void* in, void* out, int64_t count, gar_type type, gar_op op, int root) {
  return move(comm, {Movement::kReduce, in, out, count, type, op, root}, __func__);
}

gar_status gar_scatter(gar_comm* comm, const void* in, void* out, int64_t block_count, gar_type type, int root) {
  return move(comm, {Movement::kScatter, in, out, block_count, type, GAR_SUM, root}, __func__);
}

gar_status gar_gather(gar_comm* comm, const void* in, void* out, int64_t block_count, gar_type type, int root) {
  return move(comm, {Movement::kGather, in, out, block_count, type, GAR_SUM, root}, __func__);
}

gar_status gar_all_to_all(gar_comm* comm, const void* in, void* out, int64_t block_count, gar_type type) {
  return move(comm, {Movement::kAllToAll, in, out, block_count, type}, __func__);
}

gar_status gar_all_to_all_v(gar_comm* comm, const void* in, const int64_t* in_counts, void* out,
                            const int64_t* out_counts, gar_type type) {
  return gar::c_api::guarded(__func__, [&](const char* function) {
    gar::Communicator& communicator = gar::c_api::communicator_of(comm, function);
    gar::c_api::require(in_counts != nullptr && out_counts != nullptr, function,
                        "`in_counts` or `out_counts` is NULL; expected a number of elements for each rank");
    gar::MovementCall call =
        gar::c_api::checked_movement({Movement::kAllToAll, in, out, 0, type}, communicator, function);
    call.in_counts.assign(in_counts, in_counts + communicator.size());
    call.out_counts.assign(out_counts, out_counts + communicator.size());
    communicator.move(call);
  });
}

gar_status gar_send(gar_comm* comm, const void* data, int64_t count, gar_type type) {
  return move(comm, {Movement::kTransfer, data, nullptr, count, type, GAR_SUM, gar::c_api::own_rank(comm)}, __func__);
}

gar_status gar_receive(gar_comm* comm, void* data, int64_t count, gar_type type) {
  return move(comm, {Movement::kTransfer, nullptr, data, count, type, GAR_SUM, gar::c_api::other_rank(comm)}, __func__);
}

gar_status gar_broadcast_start(gar_comm* comm, void* data, int64_t count, gar_type type, int root,
                               gar_request** request) {
  return start_move(comm, {Movement::kBroadcast, data, data, count, type, GAR_SUM, root}, request, __func__);
}

gar_status gar_reduce_to_start(gar_comm* comm, const void* in, void* out, int64_t count, gar_type type, gar_op op,
                               int root, gar_request** request) {
  return start_move(comm, {Movement::kReduce, in, out, count, type, op, root}, request, __func__);
}

gar_status gar_scatter_start(gar_comm* comm, const void* in, void* out, int64_t block_count, gar_type type, int root,
                             gar_request** request) {
  return start_move(comm, {Movement::kScatter, in, out, block_count, type, GAR_SUM, root}, request, __func__);
}

gar_status gar_gather_start(gar_comm* comm, const void* in, void* out, int64_t block_count, gar_type type, int root,
                            gar_request** request) {
  return start_move(comm, {Movement::kGather, in, out, block_count, type, GAR_SUM, root}, request, __func__);
}

gar_status gar_all_to_all_start(gar_comm* comm, const void* in, void* out, int64_t block_count, gar_type type,
                                gar_request** request) {
  return start_move(comm, {Movement::kAllToAll, in, out, block_count, type}, request, __func__);
}

gar_status gar_send_start(gar_comm* comm, const void* data, int64_t count, gar_type type, gar_request** request) {
  return start_move(comm, {Movement::kTransfer, data, nullptr, count, type, GAR_SUM, gar::c_api::own_rank(comm)},
                    request, __func__);
}

gar_status gar_receive_start(gar_comm* comm, void* data, int64_t count, gar_type type, gar_request** request) {
  return start_move(comm, {Movement::kTransfer, nullptr, data, count, type, GAR_SUM, gar::c_api::other_rank(comm)},
                    request, __func__);
}
