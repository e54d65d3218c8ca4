// Pictures in the terminal, where --plot asks for them.
#pragma once

#include <string>
#include <vector>

#include "apps/gar/cli/common.hpp"
#include "gar/link_limit.hpp"
#include "gar/plot.hpp"
#include "gar/predict.hpp"
#include "gar/quantity.hpp"
#include "gar/results_io.hpp"

namespace gar::cli {

/// A chart or bars below an empty line, as wide as the terminal; nothing where nothing is to be drawn.
void print_plot(const Context& context, const Chart& chart);
void print_plot(const Context& context, const std::string& title, const std::vector<Bar>& bars);
/// The same in lines that begin with #, in tables that programs read back.
void print_commented_plot(const Context& context, const Chart& chart);

/// Time against size, a line for each of the algorithms that are closest to the best somewhere.
Chart predict_chart(const std::vector<VectorSize>& sizes, const std::vector<PredictAnswer>& answers);
/// The terms of each algorithm.
std::vector<Bar> predict_bars(const std::vector<const PredictRow*>& rows);
/// Measured times over expected ones.
Chart diagnose_chart(const Results& results, const std::vector<Observation>& observations, const Diagnosis& diagnosis);
/// The share of the links' speed that was reached.
Chart diagnose_chart(const Results& results, const LimitDiagnosis& diagnosis);

}  // namespace gar::cli
