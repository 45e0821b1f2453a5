// The server as a run starts it: keys, routes, sockets, and its end.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "easydel/server/serve_config.h"
#include "easydel/server/served_model.h"

namespace easydel::server {

class Server {
 public:
  // Reads keys. UserError: a file is broken.
  explicit Server(const ServeConfig& config);
  ~Server();  // closes everything
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Listens; until a model is ready, requests get 503. UserError: the address or the certificate cannot be used.
  void start();
  std::string address() const;          // "http://127.0.0.1:8000", "unix:/path"
  std::string metrics_address() const;  // of the second listener; empty: there is none

  // Adds a model, for requests from now on. UserError: it contradicts the settings.
  void add(ServedModel model);
  // All models are there. Logs a line, and tells systemd.
  void set_ready();

  // Waits for Ctrl-C or SIGTERM, and then lets requests finish within shutdown_timeout_seconds. A second signal ends
  // the process at once. SIGHUP calls reload(). The handlers that were there come back. True: all requests finished.
  bool run_until_signal();
  // Refuses what is new and finishes what runs; what is left after `seconds` ends with an error. True: nothing was.
  bool drain(double seconds);
  // Reads log level, certificate and keys anew. What is wrong is logged, and the old one stays.
  void reload();
  // Where reload() gets the log level. UserError of `read`: it cannot be read now.
  void reload_from(std::function<ServeConfig()> read);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace easydel::server
