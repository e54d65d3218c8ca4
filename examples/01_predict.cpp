// What do the classic AllReduce algorithms cost on a network, and which is best?
#include <cstdio>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/model.hpp"
#include "gar/predict.hpp"
#include "gar/topology.hpp"

int main() {
  const gar::Topology network = gar::builtin_topology("ss24");  // one switch, 24 servers, the paper's parameters
  gar::Predictor predictor(network, gar::classic_algorithms());

  for (const double floats : {1e5, 1e8}) {
    std::printf("%.0e floats on %s\n", floats, network.name().c_str());
    std::printf("  %-17s%9s%9s%9s%9s%9s%9s\n", "algorithm", "seconds", "alpha", "beta", "gamma", "delta", "epsilon");
    for (const gar::Prediction& p : predictor.at(floats)) {
      const gar::Terms& t = p.terms;
      std::printf("  %-17s%9.3f%9.3f%9.3f%9.3f%9.3f%9.3f\n", p.algorithm().c_str(), p.seconds(), t.alpha, t.beta,
                  t.gamma, t.delta, t.epsilon);
    }
    std::printf("  %-17s%9.3f\n", "(lower bound)", gar::lower_bound(network, floats).seconds());
  }
}
