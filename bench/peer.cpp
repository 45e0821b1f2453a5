#include "peer.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <sstream>
#include <thread>

#include "measure.h"

namespace easydel::bench {

Peer::Peer(const std::string& script, const std::vector<std::string>& arguments) {
  const char* const python = std::getenv("EASYDEL_PEER_PYTHON");
  int to[2], from[2];
  if (!python || pipe(to) != 0 || pipe(from) != 0) return;
  if (fork() == 0) {
    dup2(to[0], 0), dup2(from[1], 1);
    close(to[1]), close(from[0]);
    const std::string path = (source_root() / "bench" / script).string();
    std::vector<const char*> words = {python, path.c_str()};
    for (const std::string& word : arguments) words.push_back(word.c_str());
    words.push_back(nullptr);
    execvp(python, const_cast<char* const*>(words.data()));
    _exit(127);
  }
  close(to[0]), close(from[1]);
  to_ = fdopen(to[1], "w"), from_ = fdopen(from[0], "r");
}

Peer::~Peer() {
  if (to_) std::fclose(to_);
  if (from_) std::fclose(from_);
}

std::string Peer::answer(const std::string& line) {
  std::fprintf(to_, "%s\n", line.c_str());
  std::fflush(to_);
  std::string text;
  for (int c; (c = std::fgetc(from_)) != '\n'; text += char(c))
    if (c == EOF) std::exit(std::fprintf(stderr, "the peer has no answer to '%s'\n", line.c_str()));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // its threads spin for a while
  return text;
}

std::vector<double> Peer::numbers(const std::string& line) {
  std::istringstream words(answer(line));
  std::vector<double> out;
  for (double number; words >> number;) out.push_back(number);
  return out;
}

}  // namespace easydel::bench
