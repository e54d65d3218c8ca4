#include "meeting.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "ending.hpp"
#include "gar/errors.hpp"

namespace gar::python {

PythonStore::PythonStore(py::object meeting)
    : meeting_(std::move(meeting)), server_(meeting_.attr("server")().cast<std::string>()) {}

template <class F>
void PythonStore::ask(const std::string& what, const std::string& key, const F& f) {
  const InPython counted;
  const py::gil_scoped_acquire gil;
  try {
    f();
  } catch (const py::error_already_set& error) {
    throw TransportError("the store cannot " + what + " '" + key + "': " + error.what());
  }
}

void PythonStore::set(const std::string& key, const std::string& value) {
  ask("set", key, [&] { meeting_.attr("set")(key, py::bytes(value)); });
}

std::string PythonStore::get(const std::string& key, double timeout_s) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_s);
  auto pause = std::chrono::microseconds(200);
  while (true) {
    std::optional<std::string> value;
    ask("get", key, [&] {
      const py::object found = meeting_.attr("look")(key);
      if (!found.is_none()) value = found.cast<std::string>();
    });
    if (value) return *value;
    if (std::chrono::steady_clock::now() > end) {
      throw TransportError("nobody has put '" + key + "' into the store for " + std::to_string(timeout_s) + " s");
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::microseconds(20'000));
  }
}

void PythonStore::announce(const std::string& box, int rank) {
  ask("set", box, [&] { meeting_.attr("announce")(box, rank); });
}

std::vector<int> PythonStore::announced(const std::string& box, int num_known) {
  std::vector<int> out;
  ask("get", box, [&] { out = meeting_.attr("announced")(box, num_known).cast<std::vector<int>>(); });
  return out;
}

}  // namespace gar::python
