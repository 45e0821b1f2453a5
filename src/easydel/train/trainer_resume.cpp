// Going on from a checkpoint: which one, what must be as it was, and what has changed.
#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/train/chat_agreement.h"
#include "easydel/train/data_order.h"
#include "easydel/train/resume_changes.h"
#include "easydel/train/trainer.h"

namespace easydel::train {
namespace {

constexpr const char* elsewhere = "name another save_directory or model_name, or set resume_if_possible: false";

// A shuffle of another version would use some rows of the epoch twice, and others not at all.
void check_data_order(const std::filesystem::path& checkpoint, const Value& cursor, const std::string& now) {
  const Value* const name = cursor.is_map() ? cursor.find(order_key) : nullptr;
  const std::string before = name ? name->scalar : "";
  if (before == now || (!name && now == order_of_files)) return;
  refuse(checkpoint.string(),
         str("its rows came in the order ", name ? "'" + before + "'" : "of an earlier version",
             ", and this program's is '", now, "': the rest of the epoch would have some rows twice, and others not"),
         str("finish the run with the program that began it, or ", elsewhere, " to start anew"));
}

}  // namespace

void Trainer::check_changes(const std::filesystem::path& checkpoint, const Value& before) {
  const ResumeChanges changes = resume_changes(before, document());
  if (!changes.refused.empty())
    refuse(checkpoint.string(), "it cannot be continued with other settings: " + text_of(changes.refused),
           std::string(elsewhere) + " to start anew");
  if (!changes.noted.empty()) changes_ = text_of(changes.noted);
}

void Trainer::resume() {
  const auto found = checkpoints_.newest();
  if (!found) return;
  const RunState state = read_state(*found);
  check_changes(*found, state.document);
  if (training_) check_data_order(*found, state.cursor, data_order(config(), parts_.mixture, training_->windows()));
  if (state.data != source_->fingerprint()) {
    std::string chat;  // that rows are rendered with
    if (const auto before = saved_chat_fingerprint(*found); before && parts_.tokenizer)
      chat = text::chat_changes(*before, chat_fingerprint(parts_.model->folder(), *parts_.tokenizer));
    refuse(found->string(),
           chat.empty() ? "it was trained on other data than this run's"
                        : "its rows were prepared otherwise: " + chat + " changed since",
           elsewhere);
  }
  if (state.update != config().total_batch_size)
    refuse(found->string(),
           str("its updates had ", state.update, " examples, this run's have ", config().total_batch_size), elsewhere);
  if (state.order_class != order())
    log::warning("the checkpoint was computed in another order of additions (", state.order_class, ", now ", order(),
                 "): the run goes on, but not to the bit");
  // The parameters of a checkpoint are the averages of the optimizer's rule, if it has some.
  if (!optimizer_->has_moving_average()) optimizer_->show_average();
  read_optimizer(*found, parts_.load, *parts_.model, *optimizer_,
                 [&](const weights::SafetensorsFile& file) { method_->restore(SavedState(file, state.method)); });
  optimizer_->show_trained();
  if (const std::string broken = not_finite(); !broken.empty()) {
    if (ranks_.first()) checkpoints_.rename_diverged(state.step);
    refuse(found->string(), str(broken, " holds values that are not finite (NaN or infinity): the run had diverged"),
           "it was renamed to " + checkpoints_.diverged_path(state.step).string() +
               "; run again to go on from the checkpoint before it, or to start anew");
  }
  optimizer_->set_steps(state.optimizer_steps);
  source_->go_to(state.step, state.cursor);
  tokens_seen_ = state.tokens_seen;
  history_ = state.history.value_or(RunHistory());
  history_is_known_ = state.history.has_value();
  best_->restore(history_.best_model);
  if (best_->is_kept()) checkpoints_.protect(best_->step());
  plan_.from_step = state.step;
  plan_.checkpoint = found->string();
  resumed_from_ = last_saved_ = *found;
  saved_step_ = state.step;
  log::info("going on from ", found->string(), " (", state.step, " of ", plan_.steps, " steps)");
  if (!changes_.empty()) log::info("settings that were different when it was saved: ", changes_);
}

}  // namespace easydel::train
