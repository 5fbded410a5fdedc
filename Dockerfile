# The driver image for builds with a container engine. `make image` needs none and makes a smaller image.
#
# Tags of base images can change. Pin the digest that you reviewed; a registry has it (crane digest, skopeo inspect):
#   docker build --build-arg GO_IMAGE=golang:1.26-trixie@sha256:... --build-arg BASE_IMAGE=debian:trixie-slim@sha256:... .
ARG GO_IMAGE=golang:1.26-trixie
ARG BASE_IMAGE=debian:trixie-slim

FROM ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download && go mod verify
COPY . .
ARG VERSION=unknown
# TAGS of the Makefile says what the tag is for.
RUN CGO_ENABLED=0 go build -trimpath -tags grpcnotrace -ldflags "-s -w -X main.version=${VERSION}" -o /cinder-csi-driver ./cmd/cinder-csi-driver

FROM ${BASE_IMAGE}
# Remove the set-user-ID bit of mount, su, passwd and others: the node container runs as root anyway, and the controller must not become root.
RUN apt-get update \
 && apt-get install -y --no-install-recommends btrfs-progs ca-certificates e2fsprogs mount util-linux xfsprogs \
 && rm -rf /var/lib/apt/lists/* \
 && find / -xdev -type f -perm /6000 -exec chmod a-s {} + \
 && test -z "$(find / -xdev -type f -perm /6000)" \
 && mkfs.ext4 -V && mkfs.xfs -V && mkfs.btrfs --version && blkid -V && wipefs -V && mount -V && fsck -V \
 && resize2fs 2>&1 | grep -q '^resize2fs' && xfs_growfs -V && btrfs --version
COPY --from=build /cinder-csi-driver /bin/cinder-csi-driver
RUN ln -s cinder-csi-driver /bin/cinder-csi-plugin && /bin/cinder-csi-plugin --version
ENTRYPOINT ["/bin/cinder-csi-driver"]
