// Parameters of this machine for the model, from a measurement of a few milliseconds.
#pragma once

#include <string>

#include "gar/topology.hpp"

namespace gar {

/// What a rank with a core of its own needs.
struct LocalCosts {
  double alpha = 5e-6;     ///< seconds for one rank's signal to reach the others
  double beta = 4e-10;     ///< seconds per float copied through shared memory
  double gamma = 1e-11;    ///< seconds per float added
  double delta = 1.5e-10;  ///< seconds per float read or written while reducing
  double mu = 0;           ///< seconds per message that a rank sends or receives: synchronisation
};

/// gamma and delta from the seconds per float that reducing two and eight operands takes. f operands cost
///     T_f = (f - 1) gamma + (f + 1) delta,
/// so T_2 = gamma + 3 delta, T_8 = 7 gamma + 9 delta, and 7 T_2 - T_8 = 12 delta. Neither gets smaller than `smallest`.
ServerParams reduction_costs(double two, double eight, double smallest);

/// alpha and mu of messages.
struct MessageCosts {
  double alpha = 0;  ///< seconds of the way of one message
  double mu = 0;     ///< seconds of a rank for each
};
/// Out of the seconds of a step in which every rank sends and receives `messages` of them, when mu is known from
/// elsewhere: alpha + 2 messages mu. At least half of the step is alpha, so that a mu that was measured badly changes
/// no prediction by more than that, and none of such a step at all.
MessageCosts split_step(double step_s, double messages, double mu);
/// Out of the seconds of a step with one message each way, alpha + 2 mu, and of one with `messages`.
MessageCosts split_steps(double one_s, double many_s, double messages);

/// Measures beta, gamma, delta and mu with the kernels that will run; alpha stays as built in. Some 10 ms, once per
/// process.
LocalCosts measure_costs();

/// Ranks of one memory as a star; each takes `share` times as long as one that is alone.
Topology memory_topology(const std::string& name, int num_ranks, double share, const LocalCosts& costs);

/// Ranks of one host as a star. Ranks that share a core share its time.
Topology host_topology(int num_ranks, const LocalCosts& costs);

}  // namespace gar
