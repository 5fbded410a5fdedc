# shellcheck shell=bash
# version_flags VERSION: the linker flags with which a program of Kubernetes knows its version. Without them it calls itself v0.0.0, which charts and
# sidecars take for an old Kubernetes.
version_flags() {
	local version=$1 minor=${1#v1.} package flags="-s -w"
	for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
		flags+=" -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*} -X $package.gitTreeState=clean"
		flags+=" -X $package.gitCommit=$(printf '%040d' 0) -X $package.buildDate=1970-01-01T00:00:00Z"
	done
	printf '%s' "$flags"
}
