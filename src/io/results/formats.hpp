// The readers of benchmark results. A new format is one file with a reader and one line in src/io/formats.cpp.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "gar/results_io.hpp"
#include "io/results/table.hpp"

namespace gar {

/// A format that is a table.
struct ResultsTable {
  std::string_view name;  ///< "nccl-tests"
  bool (*is_opening)(
      const TableLine& comment);              ///< does this comment, which may come before the head, tell the format?
  bool (*is_head)(std::string_view comment);  ///< is this comment the head of such a table?
  std::unique_ptr<TableReader> (*reader)();
};
/// A format that is a JSON document.
struct ResultsDocument {
  std::string_view name;
  std::string_view schemas;  ///< what its schemas begin with: "gar.bench/"
  Results (*read)(std::string_view text, const std::string& source);
};
/// All formats, in src/io/formats.cpp.
std::span<const ResultsTable> results_tables();
std::span<const ResultsDocument> results_documents();

/// "# allreduce between 4 processes of this host, ..."
bool is_bench_opening(const TableLine& comment);
bool is_bench_head(std::string_view comment);
std::unique_ptr<TableReader> bench_reader();
Results read_bench_document(std::string_view text, const std::string& source);

/// "# nThread 1 nGpus 4 ..."
bool is_nccl_opening(const TableLine& comment);
bool is_nccl_head(std::string_view comment);
std::unique_ptr<TableReader> nccl_reader();

/// "# OSU MPI Allreduce Latency Test v7.3"
bool is_osu_opening(const TableLine& comment);
bool is_osu_head(std::string_view comment);
std::unique_ptr<TableReader> osu_reader();

/// "#    Intel(R) MPI Benchmarks 2021.3, MPI-1 part", "# Benchmarking Allreduce"
bool is_imb_opening(const TableLine& comment);
bool is_imb_head(std::string_view comment);
std::unique_ptr<TableReader> imb_reader();

}  // namespace gar
