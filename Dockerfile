# The driver's image for those who have a container engine; `make image` needs none and makes a smaller one.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=unknown
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /cinder-csi-driver ./cmd/cinder-csi-driver

FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends btrfs-progs ca-certificates e2fsprogs mount util-linux xfsprogs \
 && rm -rf /var/lib/apt/lists/* \
 && mkfs.ext4 -V && mkfs.xfs -V && mkfs.btrfs --version && blkid -V && wipefs -V && mount -V && fsck -V \
 && resize2fs 2>&1 | grep -q '^resize2fs' && xfs_growfs -V && btrfs --version
COPY --from=build /cinder-csi-driver /bin/cinder-csi-driver
RUN ln -s cinder-csi-driver /bin/cinder-csi-plugin && /bin/cinder-csi-plugin --version
ENTRYPOINT ["/bin/cinder-csi-driver"]
