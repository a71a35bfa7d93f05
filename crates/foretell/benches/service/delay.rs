//! A proxy in front of PostgreSQL that delays every byte, as if the database were further away.
//!
//! It consists of threads, because the timers of the asynchronous runtime are a millisecond coarse.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Starts the proxy and returns its address. It runs until the program ends.
pub fn start(database: String, one_way: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it has an address");
    thread::spawn(move || {
        while let Ok((client, _)) = listener.accept() {
            let server = TcpStream::connect(&database).expect("the database listens");
            for socket in [&client, &server] {
                socket.set_nodelay(true).expect("a socket");
            }
            let back = (server.try_clone().expect("a handle"), client.try_clone().expect("a handle"));
            carry(client, server, one_way);
            carry(back.0, back.1, one_way);
        }
    });
    address
}

/// Carries the bytes of one direction. Each chunk arrives `one_way` after it was sent.
#[expect(clippy::disallowed_methods, reason = "the delay is what this proxy is for")]
fn carry(mut from: TcpStream, mut to: TcpStream, one_way: Duration) {
    let (sent, arriving) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        let mut chunk = vec![0; 65_536];
        while let Ok(length @ 1..) = from.read(&mut chunk) {
            if sent.send((Instant::now() + one_way, chunk[..length].to_vec())).is_err() {
                break;
            }
        }
    });
    thread::spawn(move || {
        for (due, bytes) in arriving {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        // Either side may already be closed.
        drop(to.shutdown(Shutdown::Both));
    });
}
