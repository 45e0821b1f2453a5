"""lm_eval's command line with the model easydel:

python -m easydel_harness.lm_eval run --model easydel --model_args pretrained=FOLDER,dtype=fp32 --tasks NAME
"""

from lm_eval.__main__ import cli_evaluate

if __name__ == "__main__":
    cli_evaluate()
