# Files of examples/ that are of other projects' formats: the linters and schemas of these projects read them.

.PHONY: test-examples

test-examples: ## examples/ and own pipelines: actionlint, GitLab CI, Terraform, and the CRDs of Argo CD and Flux (60 MB of modules the first time)
	cd test/examples && go vet -tags crds ./... && go test -count 1 -tags crds ./...
