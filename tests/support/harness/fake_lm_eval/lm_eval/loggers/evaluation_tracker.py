from dataclasses import dataclass


@dataclass
class GeneralConfigTracker:
    model_source: str = ""
    model_name: str = ""
    chat_template: str = ""

    def log_experiment_args(self, source, arguments, instruction, template, multiturn):
        self.model_source, self.model_name, self.chat_template = source, arguments["pretrained"], template

    def log_end_time(self):
        pass
