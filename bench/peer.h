// The peer of a comparison, as a child process: a script that answers each line with a line, so that both sides can be
// measured in turns.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

namespace easydel::bench {

class Peer {
 public:
  // Runs bench/SCRIPT with the Python of EASYDEL_PEER_PYTHON; without that variable there is no peer.
  Peer(const std::string& script, const std::vector<std::string>& arguments);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  explicit operator bool() const { return to_ && from_; }
  // Exits if the script has ended.
  std::string answer(const std::string& line);
  std::vector<double> numbers(const std::string& line);
  double number(const std::string& line) { return numbers(line).at(0); }

 private:
  std::FILE *to_ = nullptr, *from_ = nullptr;
};

}  // namespace easydel::bench
