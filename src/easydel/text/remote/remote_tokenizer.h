// A tokenizer whose texts are encoded and decoded by other processes on this machine (tokenizer_worker.h). What only
// looks tokens up is answered here.
#pragma once

#include <memory>
#include <string>

#include "easydel/base/error.h"
#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::text {

// The other process has ended, hangs or answers nonsense. Whoever asked gets it; the next call connects again.
struct TokenizerLost : UserError {
  using UserError::UserError;
};

struct RemoteTokenizerOptions {
  std::string encoder, decoder;  // addresses: unix:/path or tcp://127.0.0.1:PORT
  double startup_seconds = 15;   // to wait for the processes to be there
  // To wait for an answer, and a second more for every 100 KB of text. After a process has let this time pass, calls
  // fail at once for as long, so that many texts do not wait one after the other.
  double answer_seconds = 5;
};

// Connects to both, and compares their hashes with that of `own` (tokenize_lines.h). Errors are UserErrors
// "esurge.tokenizer_endpoint: ..." and "esurge.detokenizer_endpoint: ...": the address is not one, nothing answers
// there in time, the tokenizer there is another one. Later calls may throw TokenizerLost.
std::shared_ptr<const Tokenizer> remote_tokenizer(std::shared_ptr<const Tokenizer> own,
                                                  const RemoteTokenizerOptions& options);

}  // namespace easydel::text
