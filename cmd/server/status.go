package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"vigil/reports"
)

// Why this file: server status, a table of what a running server says.

func newStatus(s *streams) *cobra.Command {
	address, asJSON, all := "", false, false
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Ask a running server how it is",
		Example: `  server status
  server status --http 127.0.0.1:9090 --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if v, ok := os.LookupEnv("VIGIL_HTTP"); ok && !cmd.Flags().Changed("http") {
				address = v
			}
			if err := takeAddress(&address)(address); err != nil || address == "" {
				return fmt.Errorf("--http: must be the HOST:PORT of a running server; got %q", address)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), 30*time.Second)
			defer cancel()
			p, raw, err := fetchStatus(ctx, address, "")
			if err != nil {
				fmt.Fprintln(s.err, "server: "+oneLine(err.Error())+"; is it running, with http on that address?")
				return &ending{exitUnserved}
			}
			if asJSON && !all {
				_, err := s.out.Write(raw)
				return err
			}
			for all && (p.ServerDriven.Next >= 0 || p.EngineDriven.Next >= 0) {
				more, _, err := fetchStatus(ctx, address, fmt.Sprintf("?limit=1000&server_driven=%d&engine_driven=%d", p.ServerDriven.Next, p.EngineDriven.Next))
				if err != nil {
					return err
				}
				p.ServerDriven.List = append(p.ServerDriven.List, more.ServerDriven.List...)
				p.EngineDriven.List = append(p.EngineDriven.List, more.EngineDriven.List...)
				p.ServerDriven.Next, p.EngineDriven.Next = more.ServerDriven.Next, more.EngineDriven.Next
			}
			if asJSON {
				return json.NewEncoder(s.out).Encode(p)
			}
			look := reports.Look(s.out, false)
			return p.write(s.out, look.Width, look.Colour)
		},
	}
	cmd.Flags().StringVar(&address, "http", "127.0.0.1:8080", "`HOST:PORT` of the running server's http")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what the server said, as JSON")
	cmd.Flags().BoolVar(&all, "all", false, "every instance, not only the first page of them")
	return cmd
}

// maxStatusBytes bounds an answer.
const maxStatusBytes = 64 << 20

func fetchStatus(ctx context.Context, address, query string) (*statusPage, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/status"+query, nil)
	if err != nil {
		return nil, nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxStatusBytes))
	if err != nil {
		return nil, nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("http://%s/status answered %s: %s", address, answer.Status, strings.TrimSpace(string(raw)))
	}
	p := &statusPage{}
	if err := json.Unmarshal(raw, p); err != nil {
		return nil, nil, fmt.Errorf("http://%s/status is not that of a vigil server: %w", address, err)
	}
	return p, raw, nil
}

// write prints the page for a person.
func (p *statusPage) write(w io.Writer, width int, colour bool) error {
	f := func(n any) string { return fmt.Sprint(n) }
	l := &p.Liveness
	window := "off: nothing is reaped"
	if l.Enabled {
		window = fmt.Sprintf("%gs after a ping, %gs before the first", l.Reap, l.Grace)
	}
	rows := [][]string{
		{"state", fmt.Sprintf("%s, pid %d, up %s", p.State, p.Server.PID, span(p.Server.Uptime))},
		{"version", p.Server.Version + ", " + p.Server.Design + " design, backend " + strings.TrimSuffix(p.Server.Backend+", "+p.Server.Reason, ", ")},
		{"bind", strings.Join(p.Server.Bind, " ") + map[bool]string{true: " (curve)"}[p.Server.Curve]},
		{"window", window},
		{"instances", fmt.Sprintf("%d server-driven, %d engine-driven; the longest silent %s (%.0f%% of its window)", p.ServerDriven.Total, p.EngineDriven.Total, span(l.Oldest), 100*l.Share)},
		{"reaped", fmt.Sprintf("%d by the window, %d by the grace, %d by proof of death", l.Reaps["window"], l.Reaps["grace"], l.Reaps["proof"])},
		{"proof of death", l.Proof.write()},
		{"mapped", fmt.Sprintf("%s in %d mappings", size(p.Memory.Mapped), p.Memory.Mappings)},
		{"releases", fmt.Sprintf("%d in progress (%s), %d stuck (%s), %d lost (%s)", p.Releases.InProgress, size(p.Releases.Bytes), p.Releases.Stuck, size(p.Releases.StuckBytes), p.Releases.Lost, size(p.Releases.LostBytes))},
		{"store", fmt.Sprintf("%d chunks, %s of %s; %d stored, %d retrieved, %d missed", p.Store.Chunks, size(p.Store.Bytes), size(p.Store.Budget), p.Store.Stored, p.Store.Retrieved, p.Store.Missed)},
		{"pools", fmt.Sprintf("main %d+%d, normal %d/%d+%d, affinity %d/%d+%d (busy/bound+waiting)", p.Pools.Main.Busy, p.Pools.Main.Waiting,
			p.Pools.Normal.Busy, p.Pools.Normal.Bound, p.Pools.Normal.Waiting, p.Pools.Affinity.Busy, p.Pools.Affinity.Bound, p.Pools.Affinity.Waiting)},
		{"refused", reasons(p.Refusals)},
		{"dropped", reasons(p.Dropped)},
	}
	for i := range p.Devices {
		rows = append(rows, []string{"device " + f(p.Devices[i].Ordinal), p.Devices[i].write()})
	}
	if p.Watch != nil && p.Watch.State != "on" {
		rows = append(rows, []string{"device watch", p.Watch.State})
	}
	if p.Server.TimeScale > 1 || p.Server.TestHooks {
		rows = append(rows, []string{"TEST", fmt.Sprintf("time runs %d times as fast, hooks %v", p.Server.TimeScale, p.Server.TestHooks)})
	}
	about := reports.Listing{Head: []string{"SERVER", ""}, Rows: rows}
	if err := about.Write(w, width, colour); err != nil {
		return err
	}
	list := reports.Listing{Head: []string{"INSTANCE", "CONTEXT", "INC", "BYTES", "SILENT", "WINDOW", "PINGED", "PROGRESS", "REAPED", "MODEL"}}
	for _, kind := range []struct {
		name string
		page *instancePage
	}{{"server-driven", &p.ServerDriven}, {"engine-driven", &p.EngineDriven}} {
		for _, i := range kind.page.List {
			pinged := "no"
			if i.Pinged {
				pinged = "yes"
			}
			progress := "none yet"
			if i.Transferred {
				progress = span(i.Progress) + " ago"
			}
			list.Rows = append(list.Rows, []string{i.Instance, kind.name, f(i.Incarnation), size(i.Bytes), span(i.Age), span(i.Window), pinged, progress, f(i.Reaped), i.Model + " x" + strconv.FormatInt(i.World, 10)})
		}
	}
	if len(list.Rows) > 0 {
		fmt.Fprintln(w)
		if err := list.Write(w, width, colour); err != nil {
			return err
		}
	}
	if p.ServerDriven.Next >= 0 || p.EngineDriven.Next >= 0 {
		fmt.Fprintf(w, "\nThere are more instances; --all lists them.\n")
	}
	if len(p.Releases.List) > 0 {
		fmt.Fprintln(w)
		r := reports.Listing{Head: []string{"RELEASE OF", "INC", "MAPPING", "BYTES", "BY", "FOR", "STATE"}}
		for _, x := range p.Releases.List {
			state := "waiting"
			if x.Closing {
				state = "closing"
			}
			if x.Stuck {
				state = "STUCK"
			}
			r.Rows = append(r.Rows, []string{x.Instance, f(x.Incarnation), f(x.Mapping), size(x.Bytes), x.By, span(x.For), state})
		}
		return r.Write(w, width, colour)
	}
	return nil
}

// write prints what is known of a device.
func (d *deviceStatus) write() string {
	text := fmt.Sprintf("%s, %s: %s open", d.Name, size(d.Total), size(d.Open))
	if d.Used != nil {
		text += fmt.Sprintf(", %s given out", size(*d.Used))
	}
	if d.Own != nil {
		text += fmt.Sprintf(", %s to this server", size(*d.Own))
	}
	if d.Unexplained != nil && *d.Unexplained > 0 {
		text += fmt.Sprintf(", %s UNEXPLAINED", size(*d.Unexplained))
	}
	for _, x := range d.XIDs {
		text += fmt.Sprintf(", %d times XID %d", x.Count, x.Code)
	}
	if d.Lost != "" {
		text += ", LOST: " + d.Lost
	}
	return text
}

func reasons(m map[string]uint64) string {
	var parts []string
	for _, name := range sortedKeys(m) {
		if m[name] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", m[name], name))
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

func span(seconds float64) string {
	switch {
	case seconds < 100:
		return fmt.Sprintf("%.1fs", seconds)
	case seconds < 7200:
		return fmt.Sprintf("%.0fs", seconds)
	}
	return fmt.Sprintf("%.1fh", seconds/3600)
}

func size(bytes uint64) string {
	for _, u := range []struct {
		name   string
		factor uint64
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if bytes >= u.factor {
			return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(bytes)/float64(u.factor)), ".0") + " " + u.name
		}
	}
	return fmt.Sprintf("%d B", bytes)
}
