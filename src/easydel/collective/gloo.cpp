// The only file that includes c10d. It calls members of ProcessGroupGloo, not of the dispatcher's ProcessGroup; their
// names are the same from torch 2.1 to 2.14.
#include "easydel/collective/gloo.h"

#include <c10/util/Logging.h>

#include <csignal>
#include <cstdlib>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/base/wait_notice.h"

namespace easydel::collective {
namespace {

using c10d::ProcessGroupGloo;

constexpr int attempts = 3;

// What a library says went wrong: its first line without the place in its sources and its advice, which are Gloo's
// "[file.cc:537] " before and " This is typically caused by ..." behind.
std::string reason(const std::exception& error) {
  std::string text = error.what();
  text = text.substr(0, text.find('\n'));
  text = text.substr(0, text.find(". This is typically"));
  if (const size_t end = text.find("] "); text.starts_with("[/") && end != std::string::npos) text.erase(0, end + 2);
  return text;
}

class C10dGroup final : public GlooGroup {
 public:
  C10dGroup(c10::intrusive_ptr<ProcessGroupGloo> group, std::string name, Milliseconds timeout)
      : group_(std::move(group)), name_(std::move(name)), timeout_(timeout) {}

  void all_reduce(Tensor x, Reduce reduce) override {
    std::vector<Tensor> tensors = {std::move(x)};
    c10d::AllreduceOptions options;
    options.reduceOp = reduce == Reduce::sum ? c10d::ReduceOp::SUM : c10d::ReduceOp::MAX;
    run("all_reduce", options, [&] { return group_->allreduce(tensors, options); });
  }
  void all_gather(Tensor result, Tensor x) override {
    c10d::AllgatherOptions options;
    run("all_gather", options, [&] { return group_->_allgather_base(result, x, options); });
  }
  void reduce_scatter(Tensor result, Tensor x) override {
    c10d::ReduceScatterOptions options;
    run("reduce_scatter", options, [&] { return group_->_reduce_scatter_base(result, x, options); });
  }
  void broadcast(Tensor x, int64_t root) override {
    std::vector<Tensor> tensors = {std::move(x)};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    run("broadcast", options, [&] { return group_->broadcast(tensors, options); });
  }
  void barrier() override {
    c10d::BarrierOptions options;
    run("barrier", options, [&] { return group_->barrier(options); });
  }

 private:
  template <class Options, class Start>
  void run(const char* what, Options& options, Start start) {
    options.timeout = timeout_;
    try {
      start()->wait();
    } catch (const std::exception& error) {
      refuse("collective", str(what, " over ", name_, " failed: ", reason(error)),
             "if another rank stopped, see the first error that it printed");
    }
  }

  c10::intrusive_ptr<ProcessGroupGloo> group_;
  std::string name_;
  Milliseconds timeout_;
};

}  // namespace

class Store {
 public:
  c10::intrusive_ptr<c10d::Store> store;
  bool loopback = true;
  Milliseconds connect, timeout;
  std::function<bool(int)> fault;
  int meshes = 0;  // made by store_for_mesh()
};

std::shared_ptr<Store> store_for_mesh(Store& store, Milliseconds timeout) {
  auto result = std::make_shared<Store>(store);
  result->store = c10::make_intrusive<c10d::PrefixStore>(str("mesh", store.meshes++), store.store);
  result->meshes = 0;
  result->timeout = timeout;
  return result;
}

std::shared_ptr<Store> meet(const mesh::World& world, const TeamOptions& options) {
  // c10d prints every error with a trace before it throws it. The exception is enough.
  if (!std::getenv("TORCH_CPP_LOG_LEVEL")) FLAGS_caffe2_log_level = 3;
  // Gloo may write to a socket whose peer has died. That is an error of the call and must not end the process.
  std::signal(SIGPIPE, SIG_IGN);
  auto result = std::make_shared<Store>();
  result->connect = Milliseconds(int64_t(options.connect_seconds * 1000));
  result->timeout = Milliseconds(int64_t(options.timeout_seconds * 1000));
  result->fault = options.fault;
  if (const char* seconds = std::getenv("EASYDEL_COLLECTIVE_TIMEOUT_SECONDS")) {
    double value = std::atof(seconds);
    if (value <= 0) {
      refuse("environment", str("EASYDEL_COLLECTIVE_TIMEOUT_SECONDS='", seconds, "' is not a number of seconds"));
    }
    result->timeout = Milliseconds(int64_t(value * 1000));
  }
  result->loopback = world.local_size == world.size;
  if (!options.file_store.empty()) {
    result->store = c10::make_intrusive<c10d::FileStore>(options.file_store.string(), world.size);
    result->store->setTimeout(result->connect);
    return result;
  }

  c10d::TCPStoreOptions tcp;
  tcp.port = world.master_port;
  tcp.isServer = world.rank == 0 && !world.agent_store;
  tcp.timeout = result->connect;
  // Our own store waits for all ranks; an agent's store has other clients, too.
  if (!world.agent_store) tcp.numWorkers = world.size;
  tcp.waitWorkers = !world.agent_store;
  const WaitNotice notice(str("rank ", world.rank, " of ", world.size, ": waiting for ",
                              world.rank == 0 ? "the other ranks" : "rank 0", " at ", world.master_address, ":",
                              world.master_port, std::getenv("MASTER_ADDR") ? "" : " (MASTER_ADDR is not set)"));
  try {
    result->store = c10::make_intrusive<c10d::TCPStore>(world.master_address, tcp);
  } catch (const std::exception& error) {
    refuse("collective",
           str("rank ", world.rank, " of ", world.size, " does not meet the others at ", world.master_address, ":",
               world.master_port, " within ", options.connect_seconds, " s (", reason(error), ")"),
           "start all ranks; MASTER_ADDR and MASTER_PORT must name the machine of rank 0 and a free port of it");
  }
  // An elastic launcher keeps its store across restarts; keys of an earlier attempt must not be seen.
  result->store = c10::make_intrusive<c10d::PrefixStore>("easydel/" + std::to_string(world.restarts), result->store);
  return result;
}

std::shared_ptr<GlooGroup> make_group(Store& store, const std::string& name, int64_t rank, int64_t size) {
  const WaitNotice notice(
      str("rank ", rank, " of the ", size, " ranks of group ", name, ": waiting for the others to connect"));
  std::string failure;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    std::string prefix = str(name, "/", attempt);
    c10::intrusive_ptr<ProcessGroupGloo> group;
    try {
      if (store.fault && store.fault(attempt)) throw std::runtime_error("a fault that was asked for");
      auto options = ProcessGroupGloo::Options::create(store.connect);
      const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
      options->devices.push_back(store.loopback ? ProcessGroupGloo::createDeviceForHostname("127.0.0.1")
                                 : interface    ? ProcessGroupGloo::createDeviceForInterface(interface)
                                                : ProcessGroupGloo::createDefaultDevice());
      group = c10::make_intrusive<ProcessGroupGloo>(c10::make_intrusive<c10d::PrefixStore>(prefix, store.store),
                                                    int(rank), int(size), options);
    } catch (const std::exception& error) {
      failure = reason(error);
    }
    // The members vote: a group is used only if it could be created on all of them.
    try {
      auto vote = [&](int64_t member) { return str(prefix, "/vote/", member); };
      store.store->set(vote(rank), std::string(group ? "stands" : "failed"));
      bool all = true;
      for (int64_t member = 0; member < size; ++member) {
        // A member whose connection failed votes at once; the others vote when their wait times out.
        store.store->wait({vote(member)}, 3 * store.connect);
        all &= store.store->get_to_str(vote(member)) == "stands";
      }
      if (all) return std::make_shared<C10dGroup>(std::move(group), name, store.timeout);
      if (failure.empty()) failure = "it failed on another rank";
    } catch (const std::exception& error) {
      failure = reason(error);
      break;  // a member does not answer at all: trying again cannot help
    }
    log::warning("collective: group ", name, " could not be created (", failure, "); trying again");
  }
  refuse("collective", str("group ", name, " of ", size, " ranks could not be created: ", failure),
         "see the first error of the other ranks; on several machines GLOO_SOCKET_IFNAME names the network interface "
         "to use");
}

}  // namespace easydel::collective
