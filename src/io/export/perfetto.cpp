// A simulation as a trace.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "gar/limits.hpp"
#include "gar/trace.hpp"
#include "io/json_text.hpp"

namespace gar {
namespace {

constexpr std::int64_t kRanks = 1;  // process numbers
constexpr std::int64_t kLinks = 2;
constexpr std::int64_t kLanesOfRank = 1000;  // room in the order of the tracks

std::string with_alike(std::string name, std::int64_t alike) {
  if (alike > 1) name += fmt::format(" ({} alike)", alike);
  return name;
}

std::int64_t key_of(const LinkId& link) {
  return (link.node.rank * (kMaxDepth + 1) + link.node.depth) * 2 + (link.is_down ? 1 : 0);
}

}  // namespace

StageLabels::StageLabels(const Plan& plan) : plan_(plan), index_(plan) {}

std::vector<StageLabels::Span> StageLabels::of_rank(std::int64_t rank) const {
  std::vector<Span> out;
  const std::int64_t end = index_.num_steps();
  SubPlanId id = plan_.is_explicit() ? kLeaf : plan_.root;
  while (id != kLeaf) {
    const SubPlan& sp = plan_.subplans[static_cast<std::size_t>(id)];
    std::int64_t step = index_.first_step(id);
    for (const Stage& stage : sp.stages) {
      const std::int64_t steps = steps_of(stage);
      const std::string label = stage_label(sp, stage);
      if (plan_.collective != Collective::kAllGather) out.push_back({step, label});
      const bool has_mirror = plan_.collective != Collective::kReduceScatter && stage.kind != StageKind::kExchange;
      if (has_mirror) out.push_back({end - step - steps, label + " (AllGather)"});
      step += steps;
    }
    for (const SubPlanRun& run : sp.children) {
      const std::int64_t ranks = index_.num_ranks(run.subplan);
      if (rank < run.count * ranks) {
        rank %= ranks;
        id = run.subplan;
        break;
      }
      rank -= run.count * ranks;
    }
  }
  std::sort(out.begin(), out.end(), [](const Span& a, const Span& b) { return a.first < b.first; });
  return out;
}

TraceWriter::TraceWriter(std::ostream& out, const Plan& plan, const Topology& topology)
    : out_(out), topology_(topology), labels_(plan) {
  out_ << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  name_process(kRanks, "ranks");
  name_process(kLinks, "links");
}

TraceWriter::Ticks TraceWriter::ticks(double seconds) { return to_whole(seconds * 1e9); }

void TraceWriter::write(const std::string& event) {
  if (error_ != 0) return;
  errno = 0;
  out_ << (is_first_ ? "\n" : ",\n") << event;
  is_first_ = false;
  if (!out_) error_ = errno != 0 ? errno : EIO;
}

void TraceWriter::write_slice(std::int64_t pid, std::int64_t tid, Ticks begin, Ticks end, const std::string& rest) {
  const auto micros = [](Ticks t) { return fmt::format("{}.{:03}", t / 1000, t % 1000); };
  write(fmt::format(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},{}}})", pid, tid, micros(begin),
                    micros(end - begin), rest));
  ++num_slices_;
}

void TraceWriter::name_process(std::int64_t pid, const char* name) {
  write(fmt::format(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":"{}"}}}})", pid, name));
  write(fmt::format(R"({{"ph":"M","pid":{0},"name":"process_sort_index","args":{{"sort_index":{0}}}}})", pid));
}

std::int64_t TraceWriter::open_track(std::int64_t pid, const std::string& name, std::int64_t order) {
  const std::int64_t tid = next_tid_++;
  write(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":{}}}}})", pid, tid,
                    quoted(name)));
  write(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_sort_index","args":{{"sort_index":{}}}}})", pid, tid,
                    order));
  return tid;
}

void TraceWriter::on_rank(std::int64_t rank, std::int64_t alike) {
  RankTrack track;
  track.order = static_cast<std::int64_t>(ranks_.size());
  track.alike = alike;
  track.name = with_alike(topology_.instance_name(rank, find_place(topology_, std::to_string(rank)).depth), alike);
  track.labels = labels_.of_rank(rank);
  track.lanes.push_back({open_track(kRanks, track.name, track.order * kLanesOfRank), 0});
  ranks_.emplace(rank, std::move(track));
}

void TraceWriter::on_link(const LinkId& link, std::int64_t alike) {
  LinkTrack track;
  track.tid =
      open_track(kLinks, with_alike(link_name(topology_, link), alike), static_cast<std::int64_t>(links_.size()));
  links_.emplace(key_of(link), track);
}

// Steps come in the order of their ends, so a lane is free when its last one ended before this one began.
TraceWriter::Lane& TraceWriter::lane_for(RankTrack& track, Ticks begin) {
  Lane* best = nullptr;
  for (Lane& lane : track.lanes) {
    if (lane.end <= begin && (best == nullptr || lane.end > best->end)) best = &lane;
  }
  if (best != nullptr) return *best;
  const auto number = static_cast<std::int64_t>(track.lanes.size());
  track.lanes.push_back({open_track(kRanks, fmt::format("{}, overlapping", track.name),
                                    track.order * kLanesOfRank + std::min(number, kLanesOfRank - 1)),
                         0});
  return track.lanes.back();
}

void TraceWriter::on_step(const StepEvent& event) {
  const auto found = ranks_.find(event.rank);
  if (found == ranks_.end()) return;
  RankTrack& track = found->second;
  const Ticks begin = ticks(event.start);
  const Ticks middle = ticks(event.received);
  const Ticks end = ticks(event.done);
  Lane& lane = lane_for(track, begin);
  lane.end = end;
  const auto after = std::upper_bound(track.labels.begin(), track.labels.end(), event.step,
                                      [](std::int64_t s, const StageLabels::Span& span) { return s < span.first; });
  const std::string label =
      after == track.labels.begin() ? fmt::format("step {}", event.step) : std::prev(after)->label;
  const std::string what = fmt::format(R"("chunk":{},"step":{},"stage":{})", event.chunk, event.step, quoted(label));
  write_slice(kRanks, lane.tid, begin, end,
              fmt::format(R"("name":{},"cat":"step","args":{{{}}})", quoted(label), what));
  const auto receipt = std::find_if(track.receipts.begin(), track.receipts.end(),
                                    [&](const Receipt& r) { return r.chunk == event.chunk && r.step == event.step; });
  if (middle > begin) {
    std::string arrived;
    if (receipt != track.receipts.end()) {
      const auto alike = static_cast<double>(track.alike);
      arrived =
          fmt::format(R"(,"messages":{:.6g},"floats":{:.6g})", receipt->messages / alike, receipt->floats / alike);
    }
    write_slice(kRanks, lane.tid, begin, middle,
                fmt::format(R"("name":"receive","cat":"receive","args":{{{}{}}})", what, arrived));
  }
  if (end > middle) {
    write_slice(kRanks, lane.tid, middle, end, fmt::format(R"("name":"reduce","cat":"reduce","args":{{{}}})", what));
  }
  if (receipt != track.receipts.end()) track.receipts.erase(receipt);
}

void TraceWriter::on_flow(const FlowEvent& event) {
  const auto found = ranks_.find(event.to);
  if (found == ranks_.end()) return;
  std::vector<Receipt>& receipts = found->second.receipts;
  auto receipt = std::find_if(receipts.begin(), receipts.end(),
                              [&](const Receipt& r) { return r.chunk == event.chunk && r.step == event.step; });
  if (receipt == receipts.end()) receipt = receipts.insert(receipts.end(), {event.chunk, event.step, 0, 0});
  receipt->messages += static_cast<double>(event.alike);
  receipt->floats += static_cast<double>(event.alike) * event.floats;
}

void TraceWriter::on_load(const LoadEvent& event) {
  const auto found = links_.find(key_of(event.link));
  if (found == links_.end()) return;
  LinkTrack& track = found->second;
  if (track.flows == event.flows && track.senders == event.senders) return;
  const Ticks now = ticks(event.time);
  close_load(track, now);
  track.since = now;
  track.flows = event.flows;
  track.senders = event.senders;
}

void TraceWriter::close_load(LinkTrack& track, Ticks now) {
  if (track.flows == 0 || now <= track.since) return;
  write_slice(kLinks, track.tid, track.since, now,
              fmt::format(R"("name":"{0} sender{1}","cat":"load","args":{{"senders":{0},"flows":{2}}})", track.senders,
                          track.senders == 1 ? "" : "s", track.flows));
}

void TraceWriter::finish(double seconds, const std::string& about) {
  for (auto& [key, track] : links_) {
    close_load(track, ticks(seconds));
    track.flows = 0;
  }
  if (error_ != 0) return;
  errno = 0;
  out_ << "\n],\"otherData\":" << about << "}\n";
  out_.flush();
  if (!out_) error_ = errno != 0 ? errno : EIO;
}

}  // namespace gar
