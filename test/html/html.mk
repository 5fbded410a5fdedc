# The pages of inspect and plan in Debian's Chromium. Outside of CI, because the browser is large.

.PHONY: test-html

HTML_SCREENSHOTS ?= docs/images

test-html: build ## as root on Debian: open the HTML pages in Chromium (it is installed if it is missing); writes docs/images
	@command -v chromium >/dev/null || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; }
	mkdir -p $(HTML_SCREENSHOTS)
	cd test/html && go vet ./... && go test -count 1 -timeout 10m -generator "$(abspath bin/cinder-csi-generator)" -screenshots "$(abspath $(HTML_SCREENSHOTS))"
