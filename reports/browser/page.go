package browser

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// View is how a page is looked at.
type View struct {
	Width, Height int  // CSS pixels
	Dark          bool // what the system prefers
	Mobile        bool // a finger, not a mouse
}

// maxConsole bounds what is kept of a console.
const maxConsole = 200

// Page is one page.
type Page struct {
	b       *Browser
	session string
	target  string
	load    chan struct{}
	console []string
	network []string
}

// Open opens an empty page.
func (b *Browser) Open(v View) (*Page, error) {
	var made struct {
		Target string `json:"targetId"`
	}
	if err := b.call("", "Target.createTarget", map[string]any{"url": "about:blank"}, &made); err != nil {
		return nil, err
	}
	var attached struct {
		Session string `json:"sessionId"`
	}
	if err := b.call("", "Target.attachToTarget", map[string]any{"targetId": made.Target, "flatten": true}, &attached); err != nil {
		return nil, err
	}
	p := &Page{b: b, session: attached.Session, target: made.Target, load: make(chan struct{}, 16)}
	b.mu.Lock()
	b.pages[p.session] = p
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		if err := p.call(domain+".enable", nil, nil); err != nil {
			return nil, err
		}
	}
	return p, p.Look(v)
}

func (p *Page) call(method string, params, result any) error {
	return p.b.call(p.session, method, params, result)
}

// Look changes how the page is looked at.
func (p *Page) Look(v View) error {
	if err := p.call("Emulation.setDeviceMetricsOverride", map[string]any{
		"width": v.Width, "height": v.Height, "deviceScaleFactor": 1, "mobile": v.Mobile}, nil); err != nil {
		return err
	}
	scheme := "light"
	if v.Dark {
		scheme = "dark"
	}
	return p.call("Emulation.setEmulatedMedia", map[string]any{
		"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// event is what the page says by itself; the browser's lock is held.
func (p *Page) event(method string, params json.RawMessage) {
	switch method {
	case "Page.loadEventFired":
		select {
		case p.load <- struct{}{}:
		default:
		}
	case "Runtime.exceptionThrown":
		var e struct {
			Details struct {
				Text      string `json:"text"`
				Line      int    `json:"lineNumber"`
				Exception struct {
					Description string `json:"description"`
				} `json:"exception"`
			} `json:"exceptionDetails"`
		}
		_ = json.Unmarshal(params, &e)
		p.say(fmt.Sprintf("exception: %s %s (line %d)", e.Details.Text, e.Details.Exception.Description, e.Details.Line))
	case "Runtime.consoleAPICalled":
		var e struct {
			Type string `json:"type"`
			Args []struct {
				Value       any    `json:"value"`
				Description string `json:"description"`
			} `json:"args"`
		}
		_ = json.Unmarshal(params, &e)
		var words []string
		for _, a := range e.Args {
			words = append(words, fmt.Sprint(a.Value, a.Description))
		}
		p.say(e.Type + ": " + strings.Join(words, " "))
	case "Log.entryAdded":
		var e struct {
			Entry struct{ Level, Text string } `json:"entry"`
		}
		_ = json.Unmarshal(params, &e)
		p.say(e.Entry.Level + ": " + e.Entry.Text)
	case "Network.requestWillBeSent":
		var e struct {
			Request struct {
				URL string `json:"url"`
			} `json:"request"`
		}
		_ = json.Unmarshal(params, &e)
		if len(p.network) < maxConsole {
			p.network = append(p.network, e.Request.URL)
		}
	}
}

func (p *Page) say(text string) {
	if len(p.console) < maxConsole {
		p.console = append(p.console, text)
	}
}

// Console is what the page wrote to its console, its errors among it.
func (p *Page) Console() []string {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	return append([]string(nil), p.console...)
}

// Requests are the addresses that the page asked for, data: left out.
func (p *Page) Requests() []string {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	var list []string
	for _, u := range p.network {
		if !strings.HasPrefix(u, "data:") {
			list = append(list, u)
		}
	}
	return list
}

// Go opens a file, with #fragment behind its path where one is wanted, and
// waits until it is loaded.
func (p *Page) Go(file string) error {
	url, err := fileURL(file)
	if err != nil {
		return err
	}
	return p.GoTo(url)
}

// GoTo opens an address and waits until it is loaded.
func (p *Page) GoTo(url string) error {
	// A fragment alone would move within the page that is open.
	if err := p.call("Page.navigate", map[string]any{"url": "about:blank"}, nil); err != nil {
		return err
	}
	if err := p.loaded("about:blank"); err != nil {
		return err
	}
	var n struct {
		Error string `json:"errorText"`
	}
	if err := p.call("Page.navigate", map[string]any{"url": url}, &n); err != nil {
		return err
	}
	if n.Error != "" {
		return fmt.Errorf("%s: %s", url, n.Error)
	}
	return p.loaded(url)
}

func (p *Page) loaded(url string) error {
	select {
	case <-p.load:
		return nil
	case <-time.After(callBound):
		return fmt.Errorf("%s is not loaded within %s", url, callBound)
	}
}

// Run runs code in the page and reads its value; a promise is waited for.
func (p *Page) Run(code string, value any) error {
	var r struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	if err := p.call("Runtime.evaluate", map[string]any{"expression": code, "awaitPromise": true, "returnByValue": true}, &r); err != nil {
		return err
	}
	if r.Exception != nil {
		return fmt.Errorf("%s %s", r.Exception.Text, r.Exception.Exception.Description)
	}
	if value == nil || len(r.Result.Value) == 0 {
		return nil
	}
	return json.Unmarshal(r.Result.Value, value)
}

// Wait waits until code is true in the page.
func (p *Page) Wait(code string, within time.Duration) error {
	for until := time.Now().Add(within); ; time.Sleep(10 * time.Millisecond) {
		var yes bool
		if err := p.Run("!!("+code+")", &yes); err != nil {
			return err
		}
		if yes {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("%s is not so within %s", code, within)
		}
	}
}

// Click clicks at a place of the page, in CSS pixels.
func (p *Page) Click(x, y float64) error {
	for _, kind := range []string{"mouseMoved", "mousePressed", "mouseReleased"} {
		e := map[string]any{"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1}
		if kind == "mouseMoved" {
			e["button"] = "none"
		}
		if err := p.call("Input.dispatchMouseEvent", e, nil); err != nil {
			return err
		}
	}
	return nil
}

// Press presses one key, by its name as the page sees it.
func (p *Page) Press(key string) error {
	e := map[string]any{"type": "keyDown", "key": key}
	if len([]rune(key)) == 1 {
		e["text"] = key
	}
	if err := p.call("Input.dispatchKeyEvent", e, nil); err != nil {
		return err
	}
	return p.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key}, nil)
}

// Picture is the page as a PNG: what is in view, or all of it.
func (p *Page) Picture(all bool) ([]byte, error) {
	var r struct {
		Data string `json:"data"`
	}
	params := map[string]any{"format": "png"}
	if all {
		params["captureBeyondViewport"] = true
		var m struct {
			Size struct {
				Width  float64 `json:"width"`
				Height float64 `json:"height"`
			} `json:"cssContentSize"`
		}
		if err := p.call("Page.getLayoutMetrics", nil, &m); err != nil {
			return nil, err
		}
		params["clip"] = map[string]any{"x": 0, "y": 0, "width": m.Size.Width, "height": m.Size.Height, "scale": 1}
	}
	if err := p.call("Page.captureScreenshot", params, &r); err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(r.Data)
}

// Close closes the page.
func (p *Page) Close() error {
	return p.b.call("", "Target.closeTarget", map[string]any{"targetId": p.target}, nil)
}
