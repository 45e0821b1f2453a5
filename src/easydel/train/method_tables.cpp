// The tables of the methods' own keys.
#include "easydel/config/tables.h"
#include "easydel/train/agentic_moshpit_config.h"
#include "easydel/train/base_config.h"
#include "easydel/train/bco_config.h"
#include "easydel/train/cpo_config.h"
#include "easydel/train/distillation_config.h"
#include "easydel/train/dpo_config.h"
#include "easydel/train/embedding_config.h"
#include "easydel/train/gfpo_config.h"
#include "easydel/train/gkd_config.h"
#include "easydel/train/grpo_config.h"
#include "easydel/train/gspo_config.h"
#include "easydel/train/kto_config.h"
#include "easydel/train/nash_md_config.h"
#include "easydel/train/on_policy_distillation_config.h"
#include "easydel/train/online_dpo_config.h"
#include "easydel/train/orpo_config.h"
#include "easydel/train/ppo_config.h"
#include "easydel/train/prm_config.h"
#include "easydel/train/reward_config.h"
#include "easydel/train/rloo_config.h"
#include "easydel/train/rlvr_config.h"
#include "easydel/train/sdpo_config.h"
#include "easydel/train/seq_kd_config.h"
#include "easydel/train/sft_config.h"
#include "easydel/train/sparse_distillation_config.h"
#include "easydel/train/tpo_config.h"
#include "easydel/train/xpo_config.h"

namespace easydel::config {

template const Section& section_of<train::AgenticMoshpitConfig>();
template const Section& section_of<train::BaseTrainerConfig>();
template const Section& section_of<train::BcoConfig>();
template const Section& section_of<train::CpoConfig>();
template const Section& section_of<train::DistillationConfig>();
template const Section& section_of<train::DpoConfig>();
template const Section& section_of<train::EmbeddingConfig>();
template const Section& section_of<train::GfpoConfig>();
template const Section& section_of<train::GkdConfig>();
template const Section& section_of<train::GrpoConfig>();
template const Section& section_of<train::GspoConfig>();
template const Section& section_of<train::KtoConfig>();
template const Section& section_of<train::NashMdConfig>();
template const Section& section_of<train::OnPolicyDistillationConfig>();
template const Section& section_of<train::OnlineDpoConfig>();
template const Section& section_of<train::OrpoConfig>();
template const Section& section_of<train::PpoConfig>();
template const Section& section_of<train::PrmConfig>();
template const Section& section_of<train::RewardConfig>();
template const Section& section_of<train::RlooConfig>();
template const Section& section_of<train::RlvrConfig>();
template const Section& section_of<train::SdpoConfig>();
template const Section& section_of<train::SeqKdConfig>();
template const Section& section_of<train::SftConfig>();
template const Section& section_of<train::SparseDistillationConfig>();
template const Section& section_of<train::TpoConfig>();
template const Section& section_of<train::XpoConfig>();

}  // namespace easydel::config
