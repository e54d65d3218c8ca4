// Where the members of a job find each other before they are connected: a small store of keys and values.
//
// Three kinds: a server of our own (gar store, or inside rank 0), a directory on a file system that all members see,
// and functions of the caller, for whatever a launcher or a framework has (PyTorch's Store, PMIx, etcd). Link gar::tcp.
// See docs/tcp.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace gar {

/// Keys and values that all members of a job see. A key is set once. One thread at a time.
class Store {
 public:
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;

  /// Throws TransportError when that is not possible.
  virtual void set(const std::string& key, const std::string& value) = 0;
  /// Waits until somebody has set it. Throws TransportError when nobody does within this time.
  virtual std::string get(const std::string& key, double timeout_s) = 0;
  /// What is set now, if anything is. This one asks get() for a moment, so it takes a store that cannot be asked for
  /// one that has nothing.
  virtual std::optional<std::string> look(const std::string& key);
  /// Sets the key unless it is set already; false: it is. Of several that try at the same time one succeeds. This one
  /// looks, sets and looks again, so that two may both believe it if they try within the same moment.
  virtual bool claim(const std::string& key, const std::string& value);
  /// Nobody needs it any more. A store may keep it.
  virtual void remove(const std::string& /*key*/) {}
  /// What the members share that is not in the store; empty: nothing, and whoever can read the store is a member.
  [[nodiscard]] virtual std::string secret() const { return {}; }
  /// Where its server listens, which says which interface leads to the others; empty: nobody knows.
  [[nodiscard]] virtual std::string server() const { return {}; }
};

/// Functions that do the same as those of a Store. `get` throws when nobody sets the key in time; `remove` may be
/// empty.
struct StoreCallbacks {
  std::function<void(const std::string& key, const std::string& value)> set;  ///< as Store::set
  std::function<std::string(const std::string& key, double timeout_s)> get;   ///< as Store::get
  std::function<void(const std::string& key)> remove;                         ///< as Store::remove
};
/// A store made of the caller's functions. Throws InvalidArgument when `set` or `get` is empty.
std::unique_ptr<Store> callback_store(StoreCallbacks callbacks);

/// Files in a directory that all members see; a fresh one for each job. It is made where it does not exist, for its
/// user alone, and must not be open to others: who can read it can join the job. Throws InvalidArgument.
std::unique_ptr<Store> directory_store(const std::string& path);

/// A server that keeps keys and values in memory, in a thread of its own, for clients that know the secret.
class StoreServer {
 public:
  /// Listens on "ADDRESS:PORT" alone; port 0: any. The secret has 16 characters at least. Throws InvalidArgument and
  /// TransportError.
  StoreServer(const std::string& listen, const std::string& secret);
  /// The same on a socket that listens already and does not block, which it owns from now on.
  StoreServer(int listening, const std::string& secret);
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;
  /// Where it listens: "10.77.0.1:29500".
  [[nodiscard]] std::string address() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A client of such a server, which may come up later. Throws InvalidArgument, and TransportError when there is none
/// within this time, or it does not know the secret.
std::unique_ptr<Store> tcp_store(const std::string& address, const std::string& secret, double timeout_s);

/// GAR_SECRET, or the first line of the file that GAR_SECRET_FILE names; empty when neither is set. Throws
/// InvalidArgument when it is too short, or when others than its owner may read the file.
std::string job_secret();

/// A new secret, of 64 hexadecimal digits.
std::string make_secret();

}  // namespace gar
