// Each thread takes the next few texts, so that a long text does not delay the others.
#include "easydel/text/tokenizers/batch.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

namespace easydel::text {

std::vector<std::vector<TokenId>> encode_batch(const Tokenizer& tokenizer, std::span<const std::string_view> texts,
                                               const EncodeOptions& options, unsigned threads) {
  constexpr size_t at_once = 8;
  std::vector<std::vector<TokenId>> out(texts.size());
  std::atomic<size_t> next = 0;
  std::exception_ptr failure;
  std::mutex lock;
  auto work = [&] {
    try {
      for (size_t begin; (begin = next.fetch_add(at_once)) < texts.size();)
        for (size_t i = begin; i < std::min(begin + at_once, texts.size()); ++i)
          out[i] = tokenizer.encode(texts[i], options);
    } catch (...) {
      std::lock_guard guard(lock);
      if (!failure) failure = std::current_exception();
      next = texts.size();
    }
  };
  if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
  threads = unsigned(std::min<size_t>(threads, (texts.size() + at_once - 1) / at_once));
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  if (failure) std::rethrow_exception(failure);
  return out;
}

}  // namespace easydel::text
