package logformat

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"log/slog"
	"strings"
	"testing"
)

func TestTheLogIsTextOrJSON(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"--log-format=text"}, {"--log-format=json"}} {
		var format Format
		set := flag.NewFlagSet("ebbtide", flag.ContinueOnError)
		format.Flag(set)
		if err := set.Parse(args); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		logger := slog.New(format.Handler(&log, slog.LevelInfo))
		logger.Info("Drained a node", "node", "node-7")
		logger.Debug("too much")
		var line struct{ Msg, Node string }
		switch err := json.Unmarshal(log.Bytes(), &line); {
		case format == "json" && (err != nil || line.Msg != "Drained a node" || line.Node != "node-7"):
			t.Errorf("%v: %v in %s", args, err, log.String())
		case format != "json" && !strings.HasSuffix(log.String(), "msg=\"Drained a node\" node=node-7\n"):
			t.Errorf("%v: %s", args, log.String())
		}
	}
}

func TestAnotherFormatIsRefused(t *testing.T) {
	t.Parallel()
	var format Format
	set := flag.NewFlagSet("ebbtide", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	format.Flag(set)
	if err := set.Parse([]string{"--log-format=xml"}); err == nil || !strings.Contains(err.Error(), "log-format") {
		t.Errorf("error %v, want one that names the flag", err)
	}
}
