package agent

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// PowerButton waits until somebody presses the button of the machine, as Nova does with ACPI before it stops a server.
func PowerButton() error {
	files, _ := filepath.Glob("/sys/class/input/event*/device/name")
	for _, file := range files {
		if name, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(name)) != "Power Button" {
			continue
		}
		device, err := os.Open(filepath.Join("/dev/input", filepath.Base(filepath.Dir(filepath.Dir(file)))))
		if err != nil {
			return err
		}
		defer device.Close()
		return awaitKey(device)
	}
	return errors.New("the machine has no power button")
}

// inputEvent is struct input_event of Linux (include/uapi/linux/input.h) on a machine of 64 bits.
type inputEvent struct {
	Seconds, Microseconds int64
	Type, Code            uint16
	Value                 int32
}

func awaitKey(device io.Reader) error {
	const key, power, pressed = 1, 116, 1 // EV_KEY, KEY_POWER
	buffer := make([]byte, binary.Size(inputEvent{}))
	for {
		if _, err := io.ReadFull(device, buffer); err != nil {
			return fmt.Errorf("read the power button: %w", err)
		}
		var e inputEvent
		if err := binary.Read(bytes.NewReader(buffer), binary.LittleEndian, &e); err != nil {
			return err
		}
		if e.Type == key && e.Code == power && e.Value == pressed {
			return nil
		}
	}
}
