package shutdown

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// MaxScheduleFile limits the file; its message to users may be long.
const MaxScheduleFile = 16 << 10

var farthest = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// Schedule is a shutdown with a time, for example by shutdown -r +15.
type Schedule struct {
	At   time.Time
	Type string
}

// ParseSchedule reads /run/systemd/shutdown/scheduled. It returns nil for a dry run, and fails if
// the format is unknown.
func ParseSchedule(text string) (*Schedule, error) {
	values := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && (key == "USEC" || key == "MODE") {
			values[key] = value
		}
	}
	if values["MODE"] == "" {
		return nil, errors.New("it says no MODE")
	}
	if strings.HasPrefix(values["MODE"], "dry-") {
		return nil, nil
	}
	usec, err := strconv.ParseInt(values["USEC"], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("USEC is no time: %w", err)
	}
	at := time.UnixMicro(usec).UTC()
	if usec <= 0 || !at.Before(farthest) {
		return nil, fmt.Errorf("USEC=%d is no time at which a machine can shut down", usec)
	}
	return &Schedule{At: at, Type: TypeOf(values["MODE"])}, nil
}

// TypeOf returns the type of a shutdown as the API names it.
func TypeOf(word string) string {
	switch word {
	case "reboot", "power-off", "halt", "kexec", "soft-reboot":
		return word
	case "poweroff":
		return "power-off"
	}
	return "unknown"
}
