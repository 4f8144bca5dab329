package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"vigil/core"
	"vigil/core/loop"
)

// Why this file: what is asked over HTTP. The paths under /api answer as
// LMCache's do (PROTOCOL, section 4.9); the others are ours.

// askWait bounds how long an answer waits for the server's owner.
const askWait = 2 * time.Second

type web struct {
	server *http.Server
	done   chan struct{}
}

func newWeb(v *service, l net.Listener) *web {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", overview())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", v.ready)
	mux.HandleFunc("GET /status", v.answer(func(ctx context.Context, r *http.Request) (any, error) { return v.statusAnswer(ctx, r.URL.Query()) }))
	mux.HandleFunc("GET /api/status", v.answer(func(ctx context.Context, _ *http.Request) (any, error) { return v.lmcacheStatus(ctx) }))
	mux.HandleFunc("GET /api/healthcheck", v.healthcheck)
	v.meters.registry.MustRegister(&gauges{v})
	mux.Handle("GET /metrics", promhttp.HandlerFor(v.meters.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4}))
	if v.config.pprof {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	if v.hooks != nil {
		v.hookPaths(mux)
	}
	w := &web{server: &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(v.log.Handler(), slog.LevelDebug),
	}, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		if err := w.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			v.log.Error("http has ended", "error", err)
		}
	}()
	return w
}

func (w *web) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	if w.server.Shutdown(ctx) != nil {
		w.server.Close()
	}
	<-w.done
}

// problem is an answer that says what is wrong.
type problem struct {
	code int
	text string
}

func (p *problem) Error() string { return p.text }

func (v *service) answer(make func(context.Context, *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), askWait)
		defer cancel()
		body, err := make(ctx, r)
		var p *problem
		switch {
		case err == nil:
			writeJSON(w, http.StatusOK, body)
		case errors.As(err, &p):
			writeJSON(w, p.code, map[string]string{"error": p.text})
		default:
			writeJSON(w, http.StatusServiceUnavailable, map[string]string{"error": "the server does not answer: " + err.Error()})
		}
	}
}

func writeJSON(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.Encode(body)
}

// isStopping reports whether the way out has begun.
func (v *service) isStopping() bool {
	select {
	case <-v.stopping:
		return true
	default:
		return false
	}
}

// ready says whether new work is welcome: the owner answers and does not drain.
func (v *service) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), askWait)
	defer cancel()
	status, err := v.server.Status(ctx)
	switch {
	case err != nil:
		http.Error(w, "not ready: the server does not answer: "+err.Error(), http.StatusServiceUnavailable)
	case status.Stopping || v.isStopping():
		http.Error(w, "not ready: stopping", http.StatusServiceUnavailable)
	default:
		io.WriteString(w, "ready\n")
	}
}

// healthcheck checks nothing but that the server is there, as LMCache's does.
func (v *service) healthcheck(w http.ResponseWriter, _ *http.Request) {
	select {
	case <-v.server.Done():
		writeJSON(w, http.StatusServiceUnavailable, map[string]string{"status": "unhealthy", "reason": "engine not initialized"})
	default:
		writeJSON(w, http.StatusOK, map[string]string{"status": "healthy"})
	}
}

// lmcacheStatus is the flat status of LMCache's server. Ids are bare numbers
// there, unsafe above 2^53 for readers that keep floats; ours are text.
func (v *service) lmcacheStatus(ctx context.Context) (any, error) {
	s, err := v.server.Status(ctx)
	if err != nil {
		return nil, &problem{http.StatusServiceUnavailable, "engine not initialized"}
	}
	driven, engines := []uint64{}, []uint64{}
	drivenMeta, engineMeta := map[string]any{}, map[string]any{}
	err = v.walk(ctx, core.ServerDriven, func(i *loop.Instance) {
		driven = append(driven, uint64(i.Instance))
		drivenMeta[instanceText(i.Instance)] = map[string]any{"model_name": i.Model, "world_size": i.WorldSize, "kv_cache_layout": nil}
	})
	if err == nil {
		err = v.walk(ctx, core.EngineDriven, func(i *loop.Instance) {
			engines = append(engines, uint64(i.Instance))
			engineMeta[instanceText(i.Instance)] = map[string]any{
				"model_name": i.Model, "world_size": i.WorldSize, "block_size": i.BlockSize, "use_mla": i.UseMLA,
			}
		})
	}
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"is_healthy": true, "engine_type": "MPCacheServer", "chunk_size": s.Config.ChunkTokens, "hash_algorithm": "sha256",
		"active_sessions": s.Load.Sessions,
		"storage_manager": map[string]any{
			"is_healthy": true, "l1_used_bytes": s.Load.StoreBytes, "l1_total_bytes": s.Config.L1Bytes, "l1_objects": s.Load.Chunks,
		},
		"active_prefetch_jobs": s.Load.Sessions, "active_p2p_lookup_jobs": 0, "p2p_enabled": false, "p2p_state": "disabled",
		"p2p_peer_count": 0, "p2p_peers": []string{},
		"worker_liveness": map[string]any{
			"enabled": s.Config.Reap > 0, "reap_timeout_seconds": s.Config.Reap.Seconds(),
			"registration_grace_seconds": s.Config.Grace.Seconds(), "tracked_instances": s.ServerDriven + s.EngineDriven,
		},
		"registered_gpu_ids": driven, "cache_context_meta": drivenMeta,
		"registered_non_cuda_instance_ids": engines, "non_cuda_context_meta": engineMeta,
	}, nil
}

// number reads a query's whole number.
func number(text string, initial, low, high int) (int, error) {
	if text == "" {
		return initial, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		return 0, &problem{http.StatusBadRequest, "must be a whole number from " + strconv.Itoa(low) + " to " + strconv.Itoa(high) + "; got " + strconv.Quote(text)}
	}
	return n, nil
}
