// gar store: a small server where the ranks of jobs without MPI find each other.
#include "gar/store.hpp"

#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>

#include "apps/gar/verbs/verbs.hpp"
#include "gar/environment.hpp"
#include "gar/tcp.hpp"

namespace gar::cli {
namespace {

struct StoreArgs {
  std::string listen = "127.0.0.1:0";
};

int run(const StoreArgs& args, const Context& context) {
  // Before the server's thread begins, which then leaves these signals to us.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const std::string given = job_secret();
  const std::string secret = given.empty() ? make_secret() : given;
  const StoreServer server(args.listen, secret);
  if (context.json) {
    print(fmt::format("{{\n  \"gar_version\": \"{}\",\n  \"schema\": \"gar.store/1\",\n  \"address\": \"{}\"{}\n}}\n",
                      version(), server.address(),
                      given.empty() ? fmt::format(",\n  \"secret\": \"{}\"", secret) : ""));
  } else {
    print(fmt::format("export GAR_STORE=tcp://{}\n", server.address()));
    if (given.empty()) print(fmt::format("export GAR_SECRET={}\n", secret));
  }
  std::fflush(stdout);
  int signal = 0;
  sigwait(&signals, &signal);
  return kExitOk;
}

}  // namespace

void add_store(CLI::App& program, Context& context) {
  CLI::App& verb = *program.add_subcommand("store", "Serve a store where ranks without MPI find each other");
  auto args = std::make_shared<StoreArgs>();
  verb.add_option("--listen", args->listen, "Address and port to listen on; port 0 picks a free port")
      ->type_name("ADDRESS:PORT")
      ->capture_default_str();
  add_output_options(verb, context);
  set_examples(verb,
               {{"for the ranks of this host", "gar store"},
                {"for the ranks of a cluster, with the secret that they have", "gar store --listen 10.77.0.1:29500"}});
  on_run(verb, context, [args, &context] { return run(*args, context); });
}

}  // namespace gar::cli
