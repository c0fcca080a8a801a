//! The page, and the server that a browser gets it from.

use core::convert::Infallible;
use std::{
    io,
    net::{TcpListener, TcpStream},
};

use async_io::Async;
use bevy_app::prelude::*;
use bevy_ecs::prelude::*;
use bevy_tasks::IoTaskPool;
use http_body_util::Full;
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST},
    server::conn::http1,
    service::service_fn,
};
use smol_hyper::rt::{FuturesIo, SmolTimer};

use crate::listen;

/// The page on a port of this machine.
#[derive(Debug)]
pub struct Page {
    listener: TcpListener,
    site: Site,
}

/// What the server knows.
#[derive(Clone, Debug)]
struct Site {
    port: u16,
    remote_port: u16,
}

impl Page {
    /// Takes a port for the page, a free one for zero. The page asks `bevy_remote` on `remote_port`.
    ///
    /// # Errors
    ///
    /// Fails if another program uses the port.
    pub fn bind(port: u16, remote_port: u16) -> io::Result<Self> {
        let listener = listen(port)?;
        let port = listener.local_addr()?.port();
        Ok(Self {
            listener,
            site: Site { port, remote_port },
        })
    }

    /// Returns the address of the page.
    #[must_use]
    pub fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.site.port)
    }
}

impl Plugin for Page {
    fn build(&self, app: &mut App) {
        let listener = self
            .listener
            .try_clone()
            .expect("the system has handles left");
        let site = self.site.clone();
        app.insert_resource(Server { listener, site })
            .add_systems(Startup, serve);
    }
}

#[derive(Resource)]
struct Server {
    listener: TcpListener,
    site: Site,
}

fn serve(server: Res<Server>) -> Result {
    let listener = Async::new(server.listener.try_clone()?)?;
    let site = server.site.clone();
    let serve = async move {
        while let Ok((stream, _)) = listener.accept().await {
            IoTaskPool::get().spawn(talk(stream, site.clone())).detach();
        }
    };
    IoTaskPool::get().spawn(serve).detach();
    Ok(())
}

/// Answers the requests of one connection, until the browser closes it.
async fn talk(stream: Async<TcpStream>, site: Site) {
    let service =
        service_fn(|request| core::future::ready(Ok::<_, Infallible>(site.answer(&request))));
    let mut server = http1::Builder::new();
    let connection = server
        .timer(SmolTimer::new())
        .serve_connection(FuturesIo::new(stream), service);
    // A browser that goes away is no error.
    let _ = connection.await;
}

impl Site {
    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let host = format!("127.0.0.1:{}", self.port);
        // Only the page's own origin may read the answers of `bevy_remote`.
        if request
            .headers()
            .get(HOST)
            .is_none_or(|given| given.as_bytes() != host.as_bytes())
        {
            let text = format!("The page is at http://{host}\n");
            return response(StatusCode::MISDIRECTED_REQUEST, "text/plain", text);
        }
        match request.uri().path() {
            "/" => {
                let page = include_str!("../page.html");
                let mut page = response(StatusCode::OK, "text/html; charset=utf-8", page);
                let policy = self.policy().try_into().expect("plain text");
                page.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
                page
            }
            "/remote" => response(StatusCode::OK, "text/plain", self.remote()),
            _ => response(StatusCode::NOT_FOUND, "text/plain", "The page is at /\n"),
        }
    }

    fn remote(&self) -> String {
        format!("http://127.0.0.1:{}", self.remote_port)
    }

    /// The page loads nothing, talks to the game alone, and no other site can frame it and so borrow its
    /// buttons.
    fn policy(&self) -> String {
        let remote = self.remote();
        format!(
            "default-src 'none'; img-src data:; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
             connect-src 'self' {remote}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
    }
}

fn response(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let content_type = hyper::header::HeaderValue::from_static(content_type);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}
