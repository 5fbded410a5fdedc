package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestADiskHasItsDeviceAndItsLinkUntilItGoes(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("devices are made by root")
	}
	sys, dev, made := t.TempDir(), t.TempDir(), map[string]disk{}
	if err := os.MkdirAll(filepath.Join(dev, byID), 0o755); err != nil {
		t.Fatal(err)
	}
	show := func(name string, attributes map[string]string) {
		if err := os.MkdirAll(filepath.Join(sys, name), 0o755); err != nil {
			t.Fatal(err)
		}
		for attribute, value := range attributes {
			if err := os.WriteFile(filepath.Join(sys, name, attribute), []byte(value), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := update(sys, dev, made); err != nil {
			t.Fatal(err)
		}
	}
	target := func(serial string) string {
		to, _ := filepath.EvalSymlinks(filepath.Join(dev, byID, "virtio-"+serial))
		return to
	}

	show("vda", map[string]string{"dev": "7:0\n"})
	show("vdb", map[string]string{"dev": "7:1\n", "serial": "11111111-1111-1111-1"})
	if want, got := filepath.Join(dev, "vdb"), target("11111111-1111-1111-1"); got != want {
		t.Errorf("the link leads to %q, want %q", got, want)
	}
	if links, _ := os.ReadDir(filepath.Join(dev, byID)); len(links) != 1 {
		t.Errorf("want one link, got %v", links)
	}
	show("vdb", map[string]string{"dev": "7:2\n", "serial": "22222222-2222-2222-2"})
	if want, got := filepath.Join(dev, "vdb"), target("22222222-2222-2222-2"); got != want {
		t.Errorf("after another disk took the name, the link leads to %q, want %q", got, want)
	}
	if got := target("11111111-1111-1111-1"); got != "" {
		t.Errorf("the link of the disk before leads to %q", got)
	}
	if err := os.RemoveAll(filepath.Join(sys, "vdb")); err != nil {
		t.Fatal(err)
	}
	show("vda", nil)
	if _, err := os.Lstat(filepath.Join(dev, "vdb")); err == nil {
		t.Error("the device of a disk that went is there")
	}
	if links, _ := os.ReadDir(filepath.Join(dev, byID)); len(links) != 0 {
		t.Errorf("want no link, got %v", links)
	}
}
