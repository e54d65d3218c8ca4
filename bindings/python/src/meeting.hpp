// Where the ranks of a process group of PyTorch find each other: its store, through an object of Python.
#pragma once

#include <string>
#include <vector>

#include "common.hpp"
#include "gar/store.hpp"

namespace gar::python {

/// A store made of an object of Python (gar._torch_work.Meeting), none of whose methods waits. For any thread, one at a
/// time; takes Python's lock. Made and destroyed with the lock.
class PythonStore final : public Store {
 public:
  explicit PythonStore(py::object meeting);

  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, double timeout_s) override;
  [[nodiscard]] std::string server() const override { return server_; }

  /// A rank says in this box that it is there.
  void announce(const std::string& box, int rank);
  /// Who has said so, in the order in which they did, without the first ones.
  std::vector<int> announced(const std::string& box, int num_known);

 private:
  template <class F>
  void ask(const std::string& what, const std::string& key, const F& f);

  py::object meeting_;
  std::string server_;
};

}  // namespace gar::python
