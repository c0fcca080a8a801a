//! A page of another site learns nothing.

mod support;

use serde_json::Value;
use support::*;
use ureq::{Agent, http::StatusCode};

fn header<'a>(response: &'a ureq::http::Response<ureq::Body>, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

#[test]
fn a_browser_gives_the_answers_to_the_own_page_only() {
    let game = Game::start();
    let request = request("rpc.discover", Value::Null);
    for origin in [game.page.as_str(), "http://site.example", "null"] {
        let asked = ureq::post(&game.remote)
            .header("Origin", origin)
            .send_json(&request);
        let response = asked.expect("an answer");
        let allowed = header(&response, "access-control-allow-origin");
        assert_eq!(allowed, Some(game.page.as_str()), "asked by {origin}");
        for name in ["credentials", "headers", "methods", "private-network"] {
            let name = format!("access-control-allow-{name}");
            assert_eq!(header(&response, &name), None, "{name}");
        }
    }
}

#[test]
fn the_page_loads_nothing_and_can_not_be_framed() {
    let game = Game::start();
    let mut page = ureq::get(&game.page).call().expect("a page");
    let policy = header(&page, "content-security-policy")
        .expect("a policy")
        .to_owned();
    for rule in ["default-src 'none'", "frame-ancestors 'none'", &game.remote] {
        assert!(policy.contains(rule), "{policy} should contain {rule}");
    }
    let text = page.body_mut().read_to_string().expect("text");
    assert!(text.starts_with("<!doctype html>"));
    assert!(
        !text.contains("src=") && !text.contains("//cdn"),
        "nothing from outside"
    );
}

#[test]
fn the_page_answers_to_its_own_name_only() {
    let game = Game::start();
    let agent: Agent = Agent::config_builder()
        .http_status_as_error(false)
        .build()
        .into();
    for path in ["/", "/remote"] {
        let asked = agent
            .get(format!("{}{path}", game.page))
            .header("Host", "site.example")
            .call();
        assert_eq!(
            asked.expect("an answer").status(),
            StatusCode::MISDIRECTED_REQUEST
        );
    }
    let asked = agent.get(format!("{}/Cargo.toml", game.page)).call();
    assert_eq!(asked.expect("an answer").status(), StatusCode::NOT_FOUND);
}

#[test]
fn a_port_that_is_taken_is_an_error_that_names_it() {
    let game = Game::start();
    for address in [&game.page, &game.remote] {
        let port = address.rsplit(':').next().expect("a port");
        let error =
            inspector::check_port(port.parse().expect("a number")).expect_err("it is taken");
        assert!(error.to_string().contains(port), "{error}");
    }
}
