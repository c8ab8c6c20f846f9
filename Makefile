# Each target sets the machine up first: .venv with the pinned set, made once.
PYTHON ?= python3
ARGS ?=
RUN := .venv/bin/python
STAMP := .venv/installed

# Without it, importing dgl prints a notice and writes to the home folder.
export DGLBACKEND := pytorch

.PHONY: help test fuzz demo lint docs tutorials bench clean

help:  ## list the targets (the default)
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' Makefile

test: $(STAMP)  ## run all tests and every docstring's example; ARGS="-k knn" narrows
	@$(RUN) -m pytest -q -n auto --dist worksteal $(ARGS)

fuzz: $(STAMP)  ## mutate files and checkpoints for ten minutes; ARGS="--minutes 60" for longer
	@$(RUN) -m tests.fuzzing $(ARGS)

demo: $(STAMP)  ## train a plain and an oriented network, and test both on rotated shapes
	@$(RUN) examples/demo.py $(ARGS)

lint: $(STAMP)  ## check the code's style
	@$(RUN) -m ruff check .
	@$(RUN) -m ruff format --check .

docs: $(STAMP)  ## build the site in build/docs; a warning is an error
	@$(RUN) -m sphinx -q -W --keep-going -b html -c docs -d build/doctrees . build/docs $(ARGS)
	@echo "The site is build/docs/index.html."

tutorials: $(STAMP)  ## run the tutorials and store their outputs; ARGS=docs/tutorials/nbody.ipynb for one
	@$(RUN) tools/run_tutorials.py $(ARGS)

bench: $(STAMP)  ## run the speed benchmarks; ARGS are passed on
	@$(RUN) -m benchmarks $(ARGS)

clean:  ## delete .venv, builds and caches
	rm -rf .venv build dist *.egg-info .hypothesis .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A Python that was chosen by name is used or refused; the default may be replaced by a fitting one.
$(STAMP): setup.cfg constraints.txt tools/setup_venv.py
	@$(PYTHON) tools/setup_venv.py $(if $(filter file,$(origin PYTHON)),--or-another-python)

# The stamp holds the checkout's path: a moved checkout, or a Python that is gone, sets up again.
ifneq ($(shell $(RUN) -c 'print(open("$(STAMP)").read())' 2>/dev/null),$(CURDIR))
.PHONY: $(STAMP)
endif
