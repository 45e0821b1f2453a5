#include "easydel/elarge/push.h"

#include "easydel/base/error.h"

namespace easydel::elarge {

hub::PushOptions push_options(const PushConfig& action) {
  hub::PushOptions options;
  options.repository = action.repo_id;
  options.revision = action.revision;
  options.is_private = action.is_private;
  options.pull_request = action.create_pr;
  options.message = action.commit_message;
  options.description = action.commit_description;
  return options;
}

hub::PushOptions push_options(const train::TrainerConfig& trainer) {
  hub::PushOptions options;
  options.repository = trainer.hub_model_id.value_or("");
  options.revision = trainer.hub_revision;
  options.is_private = trainer.hub_private_repo;
  return options;
}

std::string pushed_text(const std::string& repository, const hub::Pushed& pushed) {
  if (pushed.sent.empty()) return repository + " is already up to date\n";
  return str("sent ", pushed.sent.size(), pushed.sent.size() == 1 ? " file" : " files", " to ", repository, " (",
             pushed.unchanged, " unchanged): ", pushed.url, "\n");
}

}  // namespace easydel::elarge
