//! Values as bytes, in little-endian order.

use alloc::{borrow::Cow, string::String};

use super::super::address::{Address, StableKey};

/// The bytes are not what this release writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// Reads values from bytes. Never reads past the end, and allocates no more than there are bytes.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn bytes(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) = self.0.split_at_checked(len).ok_or(Malformed)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*bytes)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads bytes that follow their length.
    pub(super) fn sized(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.u32()?;
        self.bytes(usize::try_from(len).map_err(|_| Malformed)?)
    }

    pub(super) fn text(&mut self) -> Result<Cow<'static, str>, Malformed> {
        let text = str::from_utf8(self.sized()?).map_err(|_| Malformed)?;
        Ok(String::from(text).into())
    }

    pub(super) fn address(&mut self) -> Result<Address, Malformed> {
        let group = self.text()?;
        let key = StableKey(self.u64()?);
        Ok(Address { group, key })
    }

    /// Returns an error if anything is left.
    pub(super) fn end(self) -> Result<(), Malformed> {
        match self.0 {
            [] => Ok(()),
            _ => Err(Malformed),
        }
    }
}

/// Writes values as bytes.
pub(super) trait Writer {
    fn put(&mut self, bytes: &[u8]);

    fn put_u8(&mut self, value: u8) {
        self.put(&[value]);
    }

    fn put_u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }

    /// Writes the length of the bytes, and the bytes. They are shorter than 4 GiB, because no frame is
    /// longer.
    fn put_sized(&mut self, bytes: &[u8]) {
        self.put_u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        self.put(bytes);
    }

    fn put_address(&mut self, address: &Address) {
        self.put_sized(address.group.as_bytes());
        self.put_u64(address.key.0);
    }
}

impl Writer for alloc::vec::Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}
