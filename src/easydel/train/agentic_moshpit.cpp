// trainer_type: agentic_moshpit. grpo whose completions are episodes: the model calls tools, and an environment answers
// and rewards its turns.
#include "easydel/train/agentic_moshpit_config.h"

#include "easydel/base/error.h"
#include "easydel/train/episode_advantages.h"
#include "easydel/train/episodes.h"
#include "easydel/train/grpo.h"
#include "easydel/train/model_tools.h"
#include "easydel/train/shared_environment.h"

namespace easydel::train {
namespace {

// The chat template tells the model of the tools that we answer, too.
RolloutKeys with_tools(const AgenticMoshpitConfig& config) {
  RolloutKeys out = config.rollouts;
  if (!config.own.tool_schemas.is_null()) {
    out.tools = config.own.tool_schemas;
    return out;
  }
  for (const std::string& name : config.own.tool_names.value_or(std::vector<std::string>{})) {
    if (!out.tools.is_list()) out.tools = Value::list();
    if (const ModelTool* const tool = find_model_tool(name)) out.tools.items.push_back(tool->schema());
  }
  return out;
}

class AgenticMoshpit final : public Grpo {
 public:
  AgenticMoshpit(const Setting& setting, const AgenticMoshpitConfig& config)
      : Grpo(setting, config.grpo,
             {config.grpo.beta, with_tools(config), config.window, config.reference, config.grpo.importance}),
        episode_keys_(config.own) {
    if (!config.own.tool_names && !config.own.environment)
      refuse("trainer.environment", "is missing, and no tool is named, so nothing answers the model",
             "give environment: {type: program, command: [...]}, or tool_names: [calculator]");
    if (!setting.model) return;
    if (config.rollouts.skip_apply_chat_template)
      refuse("trainer.skip_apply_chat_template", "episodes are conversations", "leave it out");
    settings_ = {.max_steps = episode_keys_.max_steps,
                 .max_tool_calls = episode_keys_.max_tool_calls_per_step,
                 .max_turn_length = episode_keys_.max_turn_length,
                 .max_prompt_length = config.rollouts.max_prompt_length,
                 .max_completion_length = config.rollouts.max_completion_length,
                 .max_positions = setting.model->max_positions(),
                 .tools = episode_keys_.tool_names.value_or(std::vector<std::string>{}),
                 .format = text::detect_output_format(setting.tokenizer->chat_template().value_or(""))};
    if (episode_keys_.tool_caller) settings_.format.tools = *episode_keys_.tool_caller;
    if (episode_keys_.reasoning_parser) settings_.format.reasoning = *episode_keys_.reasoning_parser;
    text::OutputParser{settings_.format};  // refuses unknown names
    if (!settings_.tools.empty() && settings_.format.tools.empty())
      refuse("trainer.tool_caller", "the chat template does not say how the model calls tools",
             str("name a format, such as hermes"));
  }

  // A prompt that is plain text becomes the message of a user.
  data::Prepared prepare(const data::TypedRow& given) const override {
    data::TypedRow row = given;
    Value messages = Value::list();
    const auto add = [&](const char* role, const std::string& content) {
      Value& message = messages.items.emplace_back(Value::map());
      message.set("role", Value::text(role));
      message.set("content", Value::text(content));
    };
    if (episode_keys_.system_prompt) add("system", *episode_keys_.system_prompt);
    if (row.conversational)
      messages.items.insert(messages.items.end(), row.prompt.items.begin(), row.prompt.items.end());
    else
      add("user", row.prompt.scalar);
    row.prompt = std::move(messages);
    row.conversational = true;
    return Grpo::prepare(row);
  }

 private:
  bool only_rewards_count() const override { return !episode_keys_.environment; }

  std::unique_ptr<Episodes> episodes() const override {
    std::unique_ptr<Environment> environment;
    if (episode_keys_.environment)
      environment =
          std::make_unique<SharedEnvironment>(build_environment(*episode_keys_.environment), model().team().all());
    return std::make_unique<Episodes>(tokenizer(), settings_, std::move(environment));
  }

  Advantages advantages(const RewardTable& rewards, const std::vector<data::Example>&) const override {
    return episode_advantages(rewards, episode_keys_, own().scale_rewards, own().multi_objective_aggregation);
  }

  AgenticMoshpitKeys episode_keys_;
  EpisodeSettings settings_;
};

}  // namespace

MethodEntry agentic_moshpit() {
  return {"agentic_moshpit", [](const Setting& setting) -> std::unique_ptr<Method> {
            return std::make_unique<AgenticMoshpit>(setting, setting.trainer.own_as<AgenticMoshpitConfig>());
          }};
}

}  // namespace easydel::train
