package node

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/host"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// step fails the test if a call failed.
func step(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// realServer is a node with one real disk, which has the serial of vol.
func realServer(t *testing.T, bytes int64) (*Server, *testenv.Machine) {
	t.Helper()
	testenv.NeedRoot(t)
	testenv.NeedTools(t, "mkfs.ext4", "e2fsprogs", "mkfs.xfs", "xfsprogs")
	m := testenv.NewMachine(t)
	m.Plug(t, "vdb", vol[:20], testenv.Loop(t, bytes))
	log := slog.New(slog.DiscardHandler)
	return New(host.New(host.Options{SysRoot: m.Sys, DevRoot: m.Dev, Log: log}), Options{Log: log}), m
}

func TestAllOperationsOfAVolumeOnANode(t *testing.T) {
	for name, c := range map[string]*csi.VolumeCapability{"ext4": mount(writer, "ext4"), "xfs": mount(writer, "xfs"), "block": block(writer)} {
		t.Run(name, func(t *testing.T) {
			s, m := realServer(t, 400<<20)
			staging, first, second := m.Path("staging"), m.Path("pods", "1", "v"), m.Path("pods", "2", "v")
			for _, target := range []string{first, second} {
				for range 2 { // every call twice: kubelet repeats them
					_, err := s.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{VolumeId: vol, StagingTargetPath: staging, VolumeCapability: c})
					step(t, "stage", err)
				}
				for range 2 {
					_, err := s.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{VolumeId: vol, StagingTargetPath: staging, TargetPath: target, VolumeCapability: c})
					step(t, "publish", err)
				}
				file := target
				if name != "block" {
					file = filepath.Join(target, "data")
				}
				if target == first {
					step(t, "write", writeAt(file, "the first pod's"))
				} else if got := readAt(t, file, 15); got != "the first pod's" {
					t.Errorf("want the first pod's bytes read by the second, got %q", got)
				}
				stats, err := s.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: vol, VolumePath: target})
				step(t, "stats", err)
				if total := stats.GetUsage()[0].GetTotal(); total < 300<<20 || total > 400<<20 {
					t.Errorf("want about 400 MiB, got %d", total)
				}
				_, err = s.NodeExpandVolume(t.Context(), &csi.NodeExpandVolumeRequest{VolumeId: vol, VolumePath: target, StagingTargetPath: staging, VolumeCapability: c})
				step(t, "expand to what it has", err)
				for range 2 {
					_, err = s.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: vol, TargetPath: target})
					step(t, "unpublish", err)
				}
				for range 2 {
					_, err = s.NodeUnstageVolume(t.Context(), &csi.NodeUnstageVolumeRequest{VolumeId: vol, StagingTargetPath: staging})
					step(t, "unstage", err)
				}
			}
			for _, path := range []string{staging, first, second} {
				if _, err := os.Lstat(path); !os.IsNotExist(err) {
					t.Errorf("want %s gone, got %v", path, err)
				}
			}
		})
	}
}

func writeAt(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_SYNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err != nil {
		return err
	}
	return f.Close()
}

func readAt(t *testing.T, path string, n int) string {
	t.Helper()
	f, err := os.Open(path)
	step(t, "open", err)
	defer f.Close()
	got := make([]byte, n)
	_, err = f.ReadAt(got, 0)
	step(t, "read", err)
	return string(got)
}

func TestExpandOfAnUnmountedPathKeepsTheRootFileSystem(t *testing.T) {
	s, m := realServer(t, 64<<20)
	_, err := s.NodeExpandVolume(t.Context(), &csi.NodeExpandVolumeRequest{VolumeId: vol, VolumePath: m.Path("nothing")})
	if !volume.Is(err, volume.NotFound) {
		t.Errorf("want not found, got %v", err)
	}
}

func TestAnInvalidVolumeIDIsNotFound(t *testing.T) {
	s, m := realServer(t, 64<<20)
	for _, id := range []string{"8charact", "short", vol[:20], "../" + vol, vol + vol} {
		_, err := s.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: m.Path("staging"), VolumeCapability: mount(writer, "")})
		if !volume.Is(err, volume.NotFound) {
			t.Errorf("%q: want not found, got %v", id, err)
		}
	}
}

// A raw disk of a lost cluster, whose PersistentVolume somebody recovered with the wrong volume mode.
func TestARecoveredRawDiskIsNotFormattedAsAFileSystem(t *testing.T) {
	const size = 32 << 20
	s, m := realServer(t, size)
	disk := filepath.Join(m.Dev, "vdb")
	raw := make([]byte, size) // without a signature that any tool knows
	_, err := rand.NewChaCha8([32]byte{7}).Read(raw)
	step(t, "make bytes", err)
	step(t, "write", os.WriteFile(disk, raw, 0o600))
	recovered := map[string]string{contract.ContextResizeRequired: "true"}
	for _, fsType := range []string{"", "ext4"} {
		_, err := s.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{
			VolumeId: vol, StagingTargetPath: m.Path("staging"), VolumeCapability: mount(writer, fsType), VolumeContext: recovered,
		})
		if !volume.Is(err, volume.DataLoss) || !strings.Contains(err.Error(), "volumeMode Block") {
			t.Errorf("file system %q: want a refusal that names the volume mode, got %v", fsType, err)
		}
	}
	got, err := os.ReadFile(disk)
	step(t, "read", err)
	if !bytes.Equal(got, raw) {
		t.Error("bytes of the disk have changed")
	}
}
