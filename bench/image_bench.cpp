// image_bench FILE...: milliseconds to decode each image, on one thread. bench/images.py compares them with Pillow's.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "easydel/base/files.h"
#include "easydel/media/image_decoder.h"

int main(int count, char** names) {
  using namespace easydel;
  using Clock = std::chrono::steady_clock;
  constexpr int rounds = 7;
  constexpr double round_seconds = 0.15;
  for (int i = 1; i < count; ++i) {
    const std::string file = files::read(names[i]);
    double best = 1e9;
    for (int round = 0; round < rounds; ++round) {
      const Clock::time_point begin = Clock::now();
      double seconds = 0;
      int images = 0;
      for (; seconds < round_seconds; ++images) {
        media::decode_image({reinterpret_cast<const uint8_t*>(file.data()), file.size()}, names[i]);
        seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      }
      best = std::min(best, seconds / images);
    }
    std::printf("%s\t%.4f\n", names[i], best * 1e3);
  }
}
