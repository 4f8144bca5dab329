package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"vigil/core"
	"vigil/reports"
	"vigil/scenarios"
	"vigil/scenarios/audit"
)

func newAudit(s *streams, common *commonFlags) *cobra.Command {
	var asJSON, html string
	var quiet bool
	cmd := &cobra.Command{
		Use:   "audit FILE",
		Short: "Hold a real server's event log against the invariants",
		Long: `Hold the event log of a real server (server run --event-log FILE) against the
invariants. A log has the server's own words and not the truth about memory,
processes and engines: what those words decide is held or broken, with the
story; of everything else audit says why this log cannot decide it. It never
prints an empty pass.

Exit code: 0 nothing broke and something was decided; 1 the call or the file was
wrong; 10 a safety invariant broke; 11 a liveness invariant broke; 14 the log
decides nothing.`,
		Example: `  simrun audit events.jsonl
  simrun audit events.jsonl --json - | jq .findings
  simrun audit events.jsonl --html log.html`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) != 1:
				return &usageError{"audit takes one event log, as server run --event-log FILE wrote it"}
			case asJSON == "-" && html == "-":
				return &usageError{"--json - and --html - both want standard output: give one of them a file"}
			}
			report, err := audit.File(args[0])
			if err != nil {
				return err
			}
			if html != "" {
				d, err := auditDiagram(args[0], report)
				if err != nil {
					return err
				}
				if err := s.write(html, d.Write); err != nil {
					return err
				}
			}
			w := s.people(common, asJSON == "-" || html == "-")
			if err := auditTable(w, args[0], report, quiet); err != nil {
				return err
			}
			if asJSON != "" {
				if err := s.write(asJSON, func(w io.Writer) error { return auditJSON(w, args[0], report) }); err != nil {
					return err
				}
			}
			return endWith(auditVerdict(report))
		},
	}
	cmd.Flags().StringVar(&asJSON, "json", "", "write the result as JSON to `FILE`, - for standard output")
	cmd.Flags().StringVar(&html, "html", "", "write the log as a page to `FILE`: a timeline of its instances")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print what broke only")
	return cmd
}

func auditVerdict(r *audit.Report) reports.Verdict {
	switch safety, liveness, nothing := r.Verdict(); {
	case safety:
		return reports.Safety
	case liveness:
		return reports.Liveness
	case nothing:
		return reports.Unknown
	}
	return reports.Pass
}

func auditTable(w human, path string, r *audit.Report, quiet bool) error {
	if !quiet {
		from := "from the server's start"
		if !r.Started {
			from = "without the server's start"
		}
		end := "it ends while the server runs"
		if r.Stopped {
			end = "to its orderly stop"
		}
		fmt.Fprintf(w, "%s: design %s, %d records over %s, %s; %s\n", path, r.Header.Design, r.Records, spanOf(r.Last-r.First), from, end)
		if r.Torn {
			fmt.Fprintln(w, "Its last line is cut off, as a kill leaves it; everything before it is judged.")
		}
		if r.Lost > 0 {
			fmt.Fprintf(w, "%d records are missing from it.\n", r.Lost)
		}
		fmt.Fprintln(w)
		l := &reports.Listing{Head: []string{"INVARIANT", "RESULT", "WHY"}}
		for i := range r.Findings {
			f := &r.Findings[i]
			why := f.Why
			if len(f.Broken) > 0 {
				why = f.Broken[0].Message
			}
			l.Rows = append(l.Rows, []string{f.Invariant, strings.ToUpper(string(f.State)), why})
		}
		if err := l.Write(w, w.Width, w.Colour); err != nil {
			return err
		}
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		for k := range f.Broken {
			v := &f.Broken[k]
			fmt.Fprintf(w, "\nBROKEN  %s at %s: %s\n", f.Invariant, spanOf(v.At), v.Message)
			lines, err := audit.Story(path, v.Message, v.At)
			if err != nil {
				return err
			}
			for _, line := range lines {
				fmt.Fprintf(w, "  %14s  %s\n", spanOf(line.At), line.Words)
			}
		}
	}
	if auditVerdict(r) == reports.Unknown {
		fmt.Fprintln(w, "\nUNKNOWN  this log decides nothing")
	}
	return nil
}

func spanOf(t core.Time) string { return scenarios.Seconds(t.Sub(0).Round(time.Microsecond)) }

// auditJSON is the result for programs.
func auditJSON(w io.Writer, path string, r *audit.Report) error {
	type broken struct {
		AtSeconds float64 `json:"at_seconds"`
		Message   string  `json:"message"`
	}
	type finding struct {
		Invariant string   `json:"invariant"`
		State     string   `json:"state"`
		Why       string   `json:"why,omitempty"`
		Broken    []broken `json:"broken,omitempty"`
	}
	out := struct {
		Version  int             `json:"version"`
		File     string          `json:"file"`
		Design   string          `json:"design"`
		Verdict  reports.Verdict `json:"verdict"`
		Records  int             `json:"records"`
		Lost     uint64          `json:"lost"`
		Torn     bool            `json:"torn"`
		Findings []finding       `json:"findings"`
	}{1, path, r.Header.Design, auditVerdict(r), r.Records, r.Lost, r.Torn, nil}
	for i := range r.Findings {
		f := finding{r.Findings[i].Invariant, string(r.Findings[i].State), r.Findings[i].Why, nil}
		for _, v := range r.Findings[i].Broken {
			f.Broken = append(f.Broken, broken{float64(v.At) / 1e9, v.Message})
		}
		out.Findings = append(out.Findings, f)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(out)
}
